# Sourced by the `install` scripts of the folders beside it. They set `here` (their own folder), `folder` (where the
# programs go) and `python`. Something that cannot be had here is named and left out; that what came is not what is
# pinned is an error.
mkdir -p "$folder"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# once NAME COMMAND FILE...: run it, unless it has been done with these very files.
once() {
  local name=$1 command=$2 stamp=$folder/.$1.installed
  shift 2
  if cat "$@" | cmp --silent - "$stamp"; then return; fi
  rm -f "$stamp"
  if "$command" "$name" >"$log" 2>&1; then
    cat "$@" >"$stamp"
    return
  fi
  cat "$log" >&2
  if grep -qE "DO NOT MATCH THE HASHES|EINTEGRITY" "$log"; then exit 1; fi
  echo "NOT RUN: the $what of requirements/$(basename "$here")/$name, because their packages could not be installed here."
}

npm_packages() {
  rm -rf "$folder/node_modules"
  cp "$here/package.json" "$here/package-lock.json" "$folder" || return
  # No lines of the packages' own are run; what comes is held to the hashes of the lock file.
  npm install --prefix "$folder" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error \
    --fetch-retries=1 --fetch-timeout=60000
}

python_program() {
  rm -rf "${folder:?}/$1"
  "$python" -m venv "$folder/$1" || return
  "$folder/$1/bin/pip" install --quiet --disable-pip-version-check --retries 1 --require-hashes --no-deps \
    --only-binary :all: -r "$here/$1.txt"
}
