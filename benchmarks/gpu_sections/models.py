from gpu_sections.runner import Place


def time_models(place: Place) -> None:
    raise NotImplementedError
