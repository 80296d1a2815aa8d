from gpu_sections.runner import Place


def run_sweeps(place: Place) -> None:
    raise NotImplementedError


def run_ray_train(place: Place) -> None:
    raise NotImplementedError
