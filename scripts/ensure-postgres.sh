#!/bin/sh
# Makes sure that the tests find PostgreSQL's server programs and pgbouncer.
# Nothing happens when they are there. Else they are installed by apt-get, without
# creating a cluster and without starting or enabling a service; on a system with
# another package manager, the command to give is said instead.
#
# The tests start servers of their own, in temporary folders; see CONTRIBUTING.md.
set -eu

has_postgres() {
	if [ -n "${WINDROW_POSTGRES_BIN:-}" ]; then
		[ -x "$WINDROW_POSTGRES_BIN/initdb" ] && return 0
		echo "WINDROW_POSTGRES_BIN=$WINDROW_POSTGRES_BIN: no initdb there" >&2
		exit 1
	fi
	command -v initdb >/dev/null && return 0
	for folder in "$(pg_config --bindir 2>/dev/null)" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin; do
		[ -x "$folder/initdb" ] && [ -x "$folder/postgres" ] && return 0
	done
	return 1
}

has_pooler() {
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]
}

missing=
has_postgres || missing=postgresql
has_pooler || missing="$missing pgbouncer"
missing=${missing# }
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "The tests need: $missing. Please install (Fedora: dnf install postgresql-server pgbouncer;" >&2
	echo "Alpine: apk add postgresql pgbouncer; macOS: brew install postgresql@17 pgbouncer)," >&2
	echo "or set WINDROW_POSTGRES_BIN to the folder of initdb and postgres." >&2
	exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
	if ! sudo -n true 2>/dev/null; then
		echo "The tests need: $missing. Please install it: sudo apt-get install $missing" >&2
		exit 1
	fi
	as_root="sudo -n"
fi

# Debian's packages ask this program whether they may start their services; 101 is
# no. One that is there already has its reasons and stays.
policy=/usr/sbin/policy-rc.d
# A drop-in that keeps the server's package from creating the cluster "main".
no_cluster=/etc/postgresql-common/createcluster.d/windrow-tests.conf
ours=
restore() {
	[ -z "$ours" ] || $as_root rm -f $ours
}
trap restore EXIT
trap 'exit 1' HUP INT TERM
write() { # path mode content; what is there already is left alone
	[ ! -e "$1" ] || return 0
	$as_root mkdir -p "$(dirname "$1")"
	ours="$ours $1"
	printf '%s\n' "$3" | $as_root tee "$1" >/dev/null
	$as_root chmod "$2" "$1"
}

install() {
	$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
}

echo "Installing for the tests: $missing" >&2
write $policy 755 '#!/bin/sh
exit 101'
write $no_cluster 644 'create_main_cluster = false'
install $missing || { $as_root apt-get update -q && install $missing; }

# The pooler's package also arranges for a start at the next boot, and a policy that
# was there already may have allowed one now.
case $missing in
*pgbouncer*)
	if command -v systemctl >/dev/null; then
		$as_root systemctl disable --now pgbouncer.service >/dev/null 2>&1 || true
	fi
	;;
esac
