# Every declaration of the public headers as a call that may have any of its pointers NULL,
# and a row of a table: awk -f arguments.awk strata.h batcher.h >arguments_calls.h
# What the valid arguments are is in arguments.c: GIVE_type for pointers, VALUE_name for
# the rest, so that a function with new ones does not compile until it has them.

BEGIN { count = 0 }

function mangled(type) { gsub(/ *\*/, "_p", type); gsub(/ /, "_", type); return type }
function pointer(type) { return type ~ /\*/ || type ~ /_fn$/ }

# "const strata_desc *d" into type and name
function split_parameter(text) {
    match(text, /[a-z_0-9]+$/)
    name = substr(text, RSTART)
    type = substr(text, 1, RSTART - 1)
    sub(/^ +/, "", type) # a list that begins on a line of its own
    sub(/ +$/, "", type)
}

function put(text,   head, n, i, given, call, result, error, list, function_name) {
    head = substr(text, 1, index(text, "(") - 1)
    match(head, /[a-z_0-9]+$/)
    function_name = substr(head, RSTART)
    result = substr(head, 1, RSTART - 1)
    sub(/ +$/, "", result)
    text = substr(text, index(text, "(") + 1)
    sub(/\).*/, "", text)
    n = text == "void" ? 0 : split(text, list, / *, */)
    error = "false"
    for (i = 1; i <= n; i++) {
        split_parameter(list[i])
        given = "VALUE_" name
        if (type == "strata_error *") {
            given = sprintf("null & %du ? NULL : err", 2 ^ (i - 1))
            error = "true"
        } else if (type == "const char *") {
            given = sprintf("null & %du ? NULL : text(\"%s\", \"%s\")", 2 ^ (i - 1),
                            function_name, name)
        } else if (pointer(type)) {
            given = sprintf("null & %du ? NULL : GIVE_%s", 2 ^ (i - 1), mangled(type))
        }
        call = call (i > 1 ? ", " : "") given
        rows[count] = rows[count] sprintf("{\"%s\", %s, %s}, ", name,
                                          pointer(type) ? "true" : "false",
                                          type ~ /\* ?\*/ ? "true" : "false")
    }
    printf "static int64_t call_%s(struct fixture *f, unsigned null, strata_error *err)\n{\n",
        function_name
    print "    (void)f, (void)null, (void)err;"
    call = function_name "(" call ")"
    if (result == "void")
        printf "    %s;\n    return 0;\n}\n", call
    else
        printf "    return (int64_t)%s%s;\n}\n", result ~ /\*/ ? "(intptr_t)" : "", call
    rows[count] = sprintf("    {\"%s\", call_%s, %s, {%s}},\n", function_name,
                          function_name, error, rows[count] "{NULL, false, false}")
    count++
}

{
    sub(/^ *\/\*.*\*\//, "")
    if ($0 ~ /^STRATA_API /) { inside = 1; declaration = "" }
    if (inside) declaration = declaration " " $0
    if (inside && /;/) {
        inside = 0
        gsub(/\/\*[^*]*\*\//, "", declaration)
        gsub(/[ \t]+/, " ", declaration)
        sub(/^ STRATA_API /, "", declaration)
        put(declaration)
    }
}

END {
    print "static const struct function functions[] = {"
    for (i = 0; i < count; i++)
        printf "%s", rows[i]
    print "};"
}
