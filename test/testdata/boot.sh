#!/bin/sh
# Starts systemd as the first process of its own namespaces, with the unit of this
# folder: boot.sh FOLDER, where FOLDER holds the binary, the native libraries (lib)
# and the unit. Nothing of it is seen outside.
set -eu
folder=$1
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p "$folder/local/bin" "$folder/local/lib"
cp "$folder/otograph" "$folder/local/bin/otograph"
cp -a "$folder/lib" "$folder/local/lib/otograph"
mount --bind "$folder/local" /usr/local
mount -t tmpfs tmpfs /var/lib -o mode=755
mount -t tmpfs tmpfs /run -o mode=755
mkdir -p /run/systemd/system /run/lock
cp "$folder/otograph.service" /run/systemd/system/
mkdir /run/systemd/system/otograph.service.d
cat > /run/systemd/system/otograph.service.d/test.conf <<'END'
[Unit]
DefaultDependencies=no
[Service]
StandardOutput=append:/run/otograph.log
StandardError=append:/run/otograph.log
Restart=no
END
printf '[Unit]\nDescription=nothing\nDefaultDependencies=no\nAllowIsolate=yes\n' > /run/systemd/system/nothing.target
export container=test
exec /lib/systemd/systemd --system --unit=nothing.target --log-target=null
