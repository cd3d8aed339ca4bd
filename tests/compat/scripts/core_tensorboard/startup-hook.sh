export HOOKED=yes
