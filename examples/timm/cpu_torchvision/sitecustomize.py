"""Lets the released torchvision be imported beside a CPU build of torch. Python runs this when it starts.

That torchvision registers parts of two operators that only its build for GPUs defines, and fails where it
finds none. timm uses neither of them. Where torchvision defines them itself, nothing is changed.
"""

import contextlib
import sys
from importlib.abc import MetaPathFinder


class OperatorsFirst(MetaPathFinder):
    """Defines the operators when torchvision is about to be imported: other processes do not pay for it."""

    def find_spec(self, fullname, path, target=None):
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            define_operators()


def define_operators():
    import torch

    if torch.version.cuda is not None:
        return
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    torch.torchvision_operators = library  # a library that is forgotten takes its operators with it


sys.meta_path.insert(0, OperatorsFirst())
