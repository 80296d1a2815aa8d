"""The cluster launcher's file passes the check of Ray."""

import jsonschema
import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from tests.cluster.manifests import ROOT

AWS = ROOT / "cluster/launcher/aws.yaml"


def config():
    return yaml.safe_load(AWS.read_text())


def test_ray_takes_it():
    validate_config(prepare_config(config()))
    wrong = config()
    wrong["available_node_types"]["cpu"]["min_worker"] = 1
    with pytest.raises(jsonschema.ValidationError, match="min_worker"):
        validate_config(prepare_config(wrong))


def test_no_node_starts_without_the_token_and_none_without_a_role_for_the_bucket():
    tree = config()
    assert "--env=RAY_AUTH_MODE=token" in tree["docker"]["run_options"]
    assert "/home/ray/.ray/auth_token" in tree["file_mounts"]
    for kind, node in tree["available_node_types"].items():
        assert node["node_config"]["IamInstanceProfile"] == {"Name": "raykd-node"}, kind
    (start,) = (command for command in tree["head_start_ray_commands"] if "--head" in command)
    assert "--dashboard-host=127.0.0.1" in start
    assert tree["available_node_types"]["head"]["resources"] == {"CPU": 0}
