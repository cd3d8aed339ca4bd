# Run once in each container before the entrypoint. What it exports, the entrypoint sees.
folder="$(python3 -c 'import sys; print(sys.prefix)')/timm"
if [ -d "$folder" ]; then
    # Beside a CPU build of torch: see cpu_torchvision/sitecustomize.py.
    export PYTHONPATH="$PWD/cpu_torchvision:$folder${PYTHONPATH:+:$PYTHONPATH}"
elif ! python3 -c 'import timm' 2>/dev/null; then
    pip install timm
fi
