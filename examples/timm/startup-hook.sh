# Run once in each container before the entrypoint. What it exports, the entrypoint sees.
# The environment that has torch: sys.prefix is the directory that this file installs into.
folder="$(python3 -c 'from importlib.util import find_spec; print(find_spec("torch").origin)')"
folder="${folder%/lib/python*}/timm"
if [ -d "$folder" ]; then
    # Beside a CPU build of torch: see cpu_torchvision/sitecustomize.py.
    export PYTHONPATH="$PWD/cpu_torchvision:$folder${PYTHONPATH:+:$PYTHONPATH}"
elif ! python3 -c 'import timm' 2>/dev/null; then
    pip install timm
fi
