/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI reader: what it gives, where it says things are, what it refuses. Malformed
 * files stand in tests/data/bad-ini and are run by tests/network/network.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "tests/ini/config_text.h"
#include "tests/support/scratch.h"

TestSuite(config, .init = scratch_make, .fini = scratch_remove);

static void expect_place(const char *what, struct config_place p, int line, int column,
                         int length)
{
    cr_expect(p.line == line && p.column == column && p.length == length,
              "%s: %d:%d+%d, want %d:%d+%d", what, p.line, p.column, p.length, line,
              column, length);
}

/* ---- lines ---- */

Test(config, keeps_sections_and_pairs_in_order_with_their_places)
{
    struct config *c = parse_good("; head\n\n[network]\nformat = 1 ; version\n"
                                  "  ; an indented comment\n[ layer   conv1 ]\n"
                                  "pad=2\nkernel  =  3x3\t\n# other comment\n"
                                  "[build]\n");
    cr_assert_eq(config_sections(c), 3);
    cr_expect_str_eq(config_section(c, 0)->kind, "network");
    cr_expect_str_eq(config_section(c, 1)->name, "conv1");
    cr_expect_eq(config_section(c, 2)->n_pairs, 0, "an empty section is there");
    expect_place("header", config_section(c, 1)->place, 6, 1, 17);
    struct config_pair *p = pair(c, "layer", "conv1", "kernel");
    cr_expect_str_eq(p->value, "3x3");
    expect_place("key", p->key_place, 8, 1, 6);
    expect_place("value", p->value_place, 8, 12, 3);
    cr_expect_str_eq(pair(c, "network", "", "format")->value, "1");
    cr_expect_null(config_get(config_section(c, 0), "pad"));
    config_free(c);
}

Test(config, reads_any_line_ends_marks_and_quotes)
{
    static const struct {
        const char *name, *text, *value;
        int column;
    } cases[] = {
        {"no line end", "[network]\nname = v", "v", 8},
        {"CR LF", "[network]\r\nname = v\r\n", "v", 8},
        {"byte order mark", "\xef\xbb\xbf[network]\nname = v\n", "v", 8},
        {"quoted", "[network]\nname = \"a, b=c [d]\"\n", "a, b=c [d]", 8},
        {"quoted hash", "[network]\nname = \"a # b\"\n", "a # b", 8},
        {"quoted empty", "[network]\nname = \"\"\n", "", 8},
        {"equals in value", "[network]\nname = a=b:c\n", "a=b:c", 8},
        {"semicolon in value", "[network]\nname = a;b\n", "a;b", 8},
        {"hash in value", "[network]\nname = a#b\n", "a#b", 8},
        {"UTF-8", "[network]\nname = \xc3\xa9t\xc3\xa9\n", "\xc3\xa9t\xc3\xa9", 8},
        {"brackets", "[network]\nname = [x]\n", "[x]", 8},
        {"dollars", "[network]\nname = a$$b$$\n", "a$b$", 8},
        {"no blanks", "[network]\nname=v\n", "v", 6},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct config *c = parse_good(cases[i].text);
        struct config_pair *p = pair(c, "network", "", "name");
        cr_expect_str_eq(p->value, cases[i].value, "%s: '%s'", cases[i].name, p->value);
        cr_expect_eq(p->value_place.column, cases[i].column, "%s", cases[i].name);
        config_free(c);
    }
}

Test(config, keeps_long_lines_keys_and_names_whole)
{
    /* Past inih's buffers of 200, 50 and 50 bytes; up to the limits. */
    static const int lengths[] = {40, 49, 50, 180, 197, 198, 199, 200, 201, 1000, 4087};
    char *text = calloc(1, 3 * 4096), value[4200], key[65], name[129];
    memset(key, 'k', 64), key[64] = '\0';
    memset(name, 'n', 128), name[128] = '\0';
    for (size_t i = 0; i < ARRAY_LENGTH(lengths); i++) {
        memset(value, 'v', sizeof value);
        value[lengths[i]] = '\0';
        snprintf(text, 3 * 4096, "[layer %s]\ntype = T\n%s = 1\nvalue  = %s\nlast = 2\n",
                 name, key, value);
        struct config *c = parse_good(text);
        cr_expect_str_eq(pair(c, "layer", name, "value")->value, value, "length %d",
                         lengths[i]);
        cr_expect_str_eq(pair(c, "layer", name, key)->value, "1");
        expect_place("after it", pair(c, "layer", name, "last")->key_place, 5, 1, 4);
        cr_expect_eq(section(c, "layer", name)->n_pairs, 4);
        config_free(c);
    }
    free(text);
}

Test(config, joins_continued_lines_and_finds_places_in_them)
{
    struct config *c = parse_good("[layer a]\ninputs = one, \\\n    two, \\\n\tthree\n"
                                  "pad = 1\n");
    struct config_pair *p = pair(c, "layer", "a", "inputs");
    struct config_item *items;
    size_t n;
    cr_expect_str_eq(p->value, "one, two, three");
    cr_assert(config_list(c, p, &items, &n) && n == 3);
    expect_place("one", config_value_place(c, p, items[0].offset, 3), 2, 10, 3);
    expect_place("two", config_value_place(c, p, items[1].offset, 3), 3, 5, 3);
    expect_place("three", config_value_place(c, p, items[2].offset, 5), 4, 2, 5);
    expect_place("pad", pair(c, "layer", "a", "pad")->key_place, 5, 1, 3);
    config_list_free(items, n);
    config_free(c);
}

Test(config, a_comment_ends_a_line_before_its_backslash)
{
    struct config *c = parse_good("[layer a]\npad = 1 ; note \\\nkernel = 3\n; x \\\n"
                                  "stride = 2\n");
    cr_expect_str_eq(pair(c, "layer", "a", "pad")->value, "1");
    cr_expect_str_eq(pair(c, "layer", "a", "kernel")->value, "3");
    cr_expect_str_eq(pair(c, "layer", "a", "stride")->value, "2");
    config_free(c);
}

/* ---- messages ---- */

Test(config, shows_place_line_and_caret)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[network]\nformat = 1 # one\n",
         "t.ini:2:12: error: ' #' starts no comment after a value; write ' ;', or quote "
         "the value\n    format = 1 # one\n               ^~~~~"},
        {"[network]\n\xc3\xa9\xc3\xa9 = 1\n",
         "t.ini:2:1: error: '\xc3\xa9\xc3\xa9' is not a key: a letter or '_' first, then "
         "letters, digits and '_'\n    \xc3\xa9\xc3\xa9 = 1\n    ^~"},
        {"[network]\nname =\t\"a\tb\n",
         "t.ini:2:8: error: the quote is not closed\n    name = \"a b\n           ^~~~"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        cr_expect_str_eq(errors_with(cases[i].text, NULL), cases[i].message, "%s",
                         errors_with(cases[i].text, NULL));
}

Test(config, shows_a_window_of_a_long_line)
{
    char text[4200];
    int n = snprintf(text, sizeof text, "[network]\nname = ");
    memset(text + n, 'v', 3000);
    strcpy(text + n + 3000, " # tail\n");
    const char *message = errors_with(text, NULL), *line = strchr(message, '\n');
    cr_assert_not_null(line);
    const char *caret = strchr(line + 1, '\n');
    cr_assert_not_null(caret);
    cr_expect_lt(caret - line, 100);
    cr_expect_eq(line[strcspn(caret + 1, "^") + 1], '#', "%s", message);
}

Test(config, collects_twenty_errors_in_the_order_of_places)
{
    char text[4096] = "[bench]\n";
    for (int i = 0; i < 27; i++)
        strcat(text, "no pair\n");
    const char *message = errors_with(text, NULL), *at = message;
    for (int line = 2; line < 22; line++) {
        char want[32];
        snprintf(want, sizeof want, "t.ini:%d:1: error", line);
        at = strstr(at, want);
        cr_assert_not_null(at, "%s is not in order in %s", want, message);
    }
    cr_expect_null(strstr(message, "t.ini:22:"));
    cr_expect_not_null(strstr(message, "\nand 7 more"), "%s", message);
}

Test(config, counts_what_the_message_has_no_room_for)
{
    char text[8192] = "[bench]\n", label[200];
    strata_error err = {0};
    struct config *c;
    memset(label, 'l', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    for (int i = 0; i < 30; i++) {
        memset(text + strlen(text), 'k', 160);
        strcat(text, "\n");
    }
    cr_assert_eq(config_parse(&c, text, strlen(text), label, NULL, &err), STRATA_OK);
    cr_assert_eq(config_finish(c, &err), STRATA_EPARSE);
    size_t shown = 0;
    for (const char *at = err.message; (at = strstr(at, ": error: ")); at++)
        shown++;
    char tail[32];
    snprintf(tail, sizeof tail, "\nand %zu more", 30 - shown);
    cr_expect_str_eq(err.message + err.length - strlen(tail), tail, "%s", err.message);
    config_free(c);
}

Test(config, hides_control_characters)
{
    const char *message = errors_with("[network]\nname = \x1b[31mred\x07\n", NULL);
    for (const char *at = message; *at; at++)
        cr_expect((unsigned char)*at >= 0x20 || *at == '\n', "0x%02x", (unsigned)*at);
}

/* ---- variables and overrides ---- */

Test(config, replaces_variables_and_finds_places_through_them)
{
    struct config *c = parse_good("[vars]\na = one\nb = ${a}, two\n[layer l]\n"
                                  "inputs = x, ${b}, $$y\n");
    struct config_pair *p = pair(c, "layer", "l", "inputs");
    cr_expect_str_eq(p->value, "x, one, two, $y");
    expect_place("x", config_value_place(c, p, 0, 1), 5, 10, 1);
    expect_place("one", config_value_place(c, p, 3, 3), 5, 13, 4);
    expect_place("two", config_value_place(c, p, 8, 3), 5, 13, 4);
    expect_place("$y", config_value_place(c, p, 13, 2), 5, 19, 3);
    config_free(c);
}

Test(config, options_define_variables_and_win_over_the_file)
{
    static const char *const define[] = {"batch=4", "dir = ${batch}/w"};
    strata_network_options options = {
        .struct_size = sizeof options, .define = define, .n_define = 2};
    const char *text = "[vars]\nbatch = 1\n[network]\nname = n${batch}\n"
                       "labels = ${dir}.txt\n";
    strata_error err = {0};
    struct config *c = parse_with(text, strlen(text), &options);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(pair(c, "network", "", "name")->value, "n4");
    cr_expect_str_eq(pair(c, "network", "", "labels")->value, "4/w.txt");
    config_free(c);
}

Test(config, overrides_replace_add_and_make_sections)
{
    static const char *const set[] = {"layer a.b.pad=1",  " layer a.b . kernel = 3x3 ",
                                      "build.fusion=no",  "network.name=\"x y\"",
                                      "build.fusion=yes", "plugins.load=b.so"};
    strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = ARRAY_LENGTH(set)};
    const char *text = "[network]\nname = n\n[layer a.b]\npad = 0\n[plugins]\n"
                       "load = a.so\n";
    strata_error err = {0};
    struct config *c = parse_with(text, strlen(text), &options);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    cr_expect_str_eq(pair(c, "layer", "a.b", "pad")->value, "1");
    cr_expect_eq(pair(c, "layer", "a.b", "pad")->value_place.file, -1);
    cr_expect_str_eq(pair(c, "layer", "a.b", "kernel")->value, "3x3");
    cr_expect_str_eq(pair(c, "network", "", "name")->value, "x y");
    cr_expect_not_null(config_find(c, "build"));
    cr_expect_str_eq(pair(c, "build", "", "fusion")->value, "yes", "the last one wins");
    cr_expect_eq(section(c, "plugins", "")->n_pairs, 2, "repeated keys add up");
    config_free(c);
}

Test(config, errors_in_options_show_the_option)
{
    static const struct {
        const char *set, *define, *message;
    } cases[] = {
        {"layer conv2.pad=1", NULL,
         "--set layer conv2.pad=1: error: no section [layer conv2]; did you mean [layer "
         "conv1]?\n    layer conv2.pad=1\n    ^~~~~~~~~~~"},
        {"pad=1", NULL, "--set pad=1: error: an override is 'section.key=value'"},
        {"layer conv1.pad", NULL, "--set layer conv1.pad: error: an override is"},
        {"layer conv1.pad=", NULL, "error: 'pad' has no value"},
        {"layer.pad=1", NULL, "error: [layer] needs a name"},
        {"bild.fusion=1", NULL, "error: unknown section [bild]; did you mean [build]?"},
        {"build.fu sion=1", NULL, "error: 'fu sion' is not a key"},
        {"vars.a=1", NULL, "error: [vars] cannot be overridden; use -D name=value"},
        {"include.file=a", NULL, "error: [include] cannot be overridden"},
        {"network.name=${v}", NULL, "error: undefined variable 'v'"},
        {"network.name=a\nb", NULL, "a line break in the option"},
        {"network.name=\"a", NULL, "error: the quote is not closed"},
        {"", NULL, "error: an override is"},
        {NULL, "v", "-D v: error: a definition is 'name=value'"},
        {NULL, "=1", "error: no key before '='"},
        {NULL, "9v=1", "error: '9v' is not a key"},
        {NULL, "v=1", "-D v=1: error: no file uses or declares a variable 'v'"},
        {NULL, "v=${u}", "error: undefined variable 'u'"},
        {NULL, "", "error: a definition is 'name=value'"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        strata_network_options options = {.struct_size = sizeof options,
                                          .set = &cases[i].set,
                                          .n_set = cases[i].set != NULL,
                                          .define = &cases[i].define,
                                          .n_define = cases[i].define != NULL};
        const char *message =
            errors_with("[network]\nname = n\n[layer conv1]\npad = 0\n", &options);
        cr_expect_not_null(strstr(message, cases[i].message), "case %zu: want '%s' in %s",
                           i, cases[i].message, message);
    }
}

/* ---- includes ---- */

Test(config, included_sections_come_where_the_include_stands)
{
    strata_error err = {0};
    struct config *c;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/sub", scratch);
    cr_assert_eq(mkdir(folder, 0755), 0);
    spill_text("sub/inner.ini", "[layer c]\ntype = ${t}\n");
    spill_text("sub/b.ini", "[layer b]\ntype = B\n[include]\nfile = inner.ini\n");
    const char *path =
        spill_text("main.ini", "[vars]\nt = T\ndir = sub\n[layer a]\ntype = A\n"
                               "[include]\nfile = ${dir}/b.ini\n"
                               "[layer d]\ntype = D\n");
    cr_assert_eq(config_load(&c, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(config_finish(c, &err), STRATA_OK, "%s", err.message);
    char order[8] = "";
    for (size_t i = 0; i < config_sections(c); i++)
        if (!strcmp(config_section(c, i)->kind, "layer"))
            strcat(order, config_section(c, i)->name);
    cr_expect_str_eq(order, "abcd");
    struct config_pair *p = pair(c, "layer", "c", "type");
    cr_expect_str_eq(p->value, "T");
    cr_expect_not_null(strstr(config_file(c, p->value_place.file), "sub/inner.ini"));
    cr_expect_str_eq(config_file(c, -1), path);
    config_free(c);
}

Test(config, reports_a_first_file_that_cannot_be_read)
{
    char missing[512];
    snprintf(missing, sizeof missing, "%s/none.ini", scratch);
    const char *const paths[] = {missing, scratch, "/dev/null"};
    for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
        strata_error err = {0};
        struct config *c;
        cr_expect_neq(config_load(&c, paths[i], NULL, &err), STRATA_OK);
        cr_expect_null(c);
        cr_expect_not_null(strstr(err.message, paths[i]), "%s", err.message);
    }
}

Test(config, text_in_memory_includes_nothing)
{
    cr_expect_not_null(strstr(errors_with("[include]\nfile = t.ini\n", NULL),
                              "text in memory cannot include files"));
}
