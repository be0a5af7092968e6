"""A container is known by the marks that its maker leaves, and not by those that an image left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.hardware.linux_trees import Tree

from antiphon.hardware.probe_container import probe_container

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

MOUNT = "1 2 8:1 /var/lib/{} /etc/hostname rw - ext4 /dev/sda1 rw\n"


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {}, ""),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'engine="podman-5"\n'}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"var/run/secrets/kubernetes.io/token": ""}, {}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({"run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({"proc/self/cgroup": "4:cpu:/docker/0123\n"}, {}, "docker"),
        ({"proc/self/cgroup": "4:cpu:/kubepods/besteffort/pod1/docker\n"}, {}, "kubernetes"),
        ({"proc/self/cgroup": "4:cpu:/lxc/name\n"}, {}, "lxc"),
        (
            {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": MOUNT.format("docker/containers/0/hostname")},
            {},
            "docker",
        ),
        ({"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": MOUNT.format("kubelet/pods/0/etc")}, {}, "kubernetes"),
        ({"proc/self/mountinfo": MOUNT.format("containers/storage/overlay/0")}, {}, "podman"),
    ],
)
def test_each_kind_leaves_its_marks(tmp_path: Path, files, variables, kind: str) -> None:
    """Files, variables, control groups, mounts."""
    tree = Tree(root=tmp_path)
    tree.namespaces(first=False)
    for name, text in files.items():
        tree.write(name, text)

    assert kind == probe_container(tmp_path, variables)


def test_a_machine_made_from_an_image_is_no_container(tmp_path: Path) -> None:
    """The file came along; the namespaces are the system's own."""
    tree = Tree(root=tmp_path)
    tree.write(".dockerenv", "")
    tree.namespaces(first=True)

    assert probe_container(tmp_path, {}) == ""


def test_marks_count_where_namespaces_cannot_be_read(tmp_path: Path) -> None:
    """Then there is no reason to doubt them."""
    Tree(root=tmp_path).write(".dockerenv", "")

    assert probe_container(tmp_path, {}) == "docker"
