# Sourced by the commands of deploy/local: finds the project's root and a Python to begin with.
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
export PYTHONPATH="$here/lib" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

# Any Python 3 will do for setup, which makes the virtual environment that everything else runs in.
first_python() {
  local candidate
  for candidate in /usr/bin/python3 python3; do
    if command -v "$candidate" > /dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
      echo "$candidate"
      return
    fi
  done
  if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "Installing python3-venv ..." >&2
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv; } \
      > /dev/null < /dev/null
    echo /usr/bin/python3
    return
  fi
  echo "Failed: there is no Python 3.10 or newer" >&2
  echo "  What to do: as root, run apt-get install python3-venv; then run this command again" >&2
  exit 1
}
