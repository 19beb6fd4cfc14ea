# shellcheck shell=bash
# Sourced by tools/demo and tools/test: installs what is missing on a Debian machine and builds the default preset.

# Debian packages, each with a file or command by which one sees that it is there.
needed_packages() {
    local row package sign
    for row in cmake:cmake ninja-build:ninja gcc:gcc g++:g++ libc6-dev:/usr/include/stdio.h python3:python3 \
        libxxhash-dev:/usr/include/xxhash.h libfyaml-dev:/usr/include/libfyaml.h libcmocka-dev:/usr/include/cmocka.h; do
        package=${row%%:*} sign=${row#*:}
        case $sign in
            /*) [ -e "$sign" ] || echo "$package" ;;
            *) command -v "$sign" >/dev/null || echo "$package" ;;
        esac
    done
}

install_packages() {
    local missing as_root=()
    mapfile -t missing < <(needed_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "Missing Debian packages: ${missing[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "Please install them: there is no apt-get here." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "Please install them as root: apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    if ! { "${as_root[@]}" apt-get update -q &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"; }; then
        echo "They could not be installed; please do it by hand: apt-get install ${missing[*]}" >&2
        return 1
    fi
}

# Configures and builds quietly; what was said is shown when it fails.
build_preset() {
    local log=build/prepare.log
    mkdir -p build
    echo "Building in build/ ..."
    if ! { cmake --preset default "$@" && cmake --build --preset default -j2; } >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        echo "The build failed; all of its output is in $log" >&2
        return 1
    fi
}
