/* SPDX-License-Identifier: Apache-2.0
 *
 * The results of `strata check` as text, as TAP, or as lines of JSON.
 */
#include "tools/check.h"

#include <stdio.h>
#include <string.h>

#include "check/rules.h"
#include "tools/tool.h"

static void print_name(const struct check_result *r)
{
    tool_print("%s%s%s%s%s", r->test, r->layer[0] ? " of " : "", r->layer,
               r->device[0] ? " on " : "", r->device);
}

/* "  what" and its value, if there is one. */
static void print_line(const char *lead, const char *what, const char *value)
{
    if (value[0])
        tool_print("%s%-9s %s\n", lead, what, value);
}

/* Each line of a text after the first behind the lead, too. */
static void print_lines(const char *lead, const char *text)
{
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        tool_print("%.*s\n%s", (int)(end - text), text, lead);
    tool_print("%s\n", text);
}

static void print_finding(const char *lead, const struct check_finding *f)
{
    tool_print("%s%s: ", lead, f->rule);
    print_lines(lead, f->text);
    print_line(lead, "  asked", check_rule(f->rule)->contract);
    print_line(lead, "  in", f->place.phase);
    print_line(lead, "  impl", f->place.impl);
    print_line(lead, "  formats", f->place.formats);
    print_line(lead, "  shape", f->place.shapes);
    print_line(lead, "  attrs", f->place.attrs);
    print_line(lead, "  variant", f->place.variant);
    print_line(lead, "  again", f->command);
}

/* ---- text and TAP
 * ------------------------------------------------------------------------ */

static void print_text(const struct check_result *r)
{
    static const char *const verdicts[] = {"ok", "FAILED", "skipped"};
    tool_print("%-8s ", verdicts[r->verdict]);
    print_name(r);
    if (r->verdict == CHECK_SKIPPED || r->note[0])
        tool_print(" (%s)", r->note);
    if (r->runs && r->verdict != CHECK_SKIPPED)
        tool_print(", %d runs in %.1f s", r->runs, r->seconds);
    tool_print("\n");
    for (size_t i = 0; i < r->n_findings; i++)
        print_finding("  ", &r->findings[i]);
}

static void print_tap(const struct check_result *r, int number)
{
    tool_print("%s %d - ", r->verdict == CHECK_FAILED ? "not ok" : "ok", number);
    print_name(r);
    if (r->verdict == CHECK_SKIPPED)
        tool_print(" # SKIP %s", r->note);
    tool_print("\n");
    if (r->verdict != CHECK_SKIPPED && r->note[0])
        tool_print("# %s\n", r->note);
    for (size_t i = 0; i < r->n_findings; i++)
        print_finding("# ", &r->findings[i]);
}

/* ---- JSON
 * -------------------------------------------------------------------------------- */

static void print_string(const char *name, const char *text)
{
    tool_print("\"%s\": \"", name);
    const unsigned char *p = (const unsigned char *)text;
    for (size_t left = strlen(text), size; left > 0; left -= size, p += size) {
        if (*p == '"' || *p == '\\')
            putchar('\\');
        size = tool_put_json_character(p, left, stdout);
    }
    tool_print("\"");
}

static void print_json_finding(const struct check_finding *f)
{
    const struct {
        const char *name, *text;
    } fields[] = {
        {"rule", f->rule},
        {"asked", check_rule(f->rule)->contract},
        {"seen", f->text},
        {"phase", f->place.phase},
        {"impl", f->place.impl},
        {"formats", f->place.formats},
        {"shape", f->place.shapes},
        {"attrs", f->place.attrs},
        {"variant", f->place.variant},
        {"again", f->command},
    };
    tool_print("{");
    for (size_t i = 0; i < ARRAY_LENGTH(fields); i++) {
        tool_print(i ? ", " : "");
        print_string(fields[i].name, fields[i].text);
    }
    tool_print("}");
}

static void print_json(const struct check_result *r)
{
    static const char *const verdicts[] = {"passed", "failed", "skipped"};
    tool_print("{");
    print_string("test", r->test);
    tool_print(", ");
    print_string("layer", r->layer);
    tool_print(", ");
    print_string("device", r->device);
    tool_print(", ");
    print_string("verdict", verdicts[r->verdict]);
    tool_print(", ");
    print_string("note", r->note);
    tool_print(", \"runs\": %d, \"seconds\": %.3f, \"findings\": [", r->runs, r->seconds);
    for (size_t i = 0; i < r->n_findings; i++) {
        tool_print(i ? ", " : "");
        print_json_finding(&r->findings[i]);
    }
    tool_print("]}\n");
}

/* ---- the whole
 * ------------------------------------------------------------------------- */

void check_output_begin(struct check_output *o)
{
    if (o->style == CHECK_TAP)
        tool_print("# %s, seed %llu\n", o->options->file,
                   (unsigned long long)o->options->seed);
    fflush(stdout);
}

void check_output_result(const struct check_result *r, void *user)
{
    struct check_output *o = user;
    o->number++;
    if (o->style == CHECK_TAP)
        print_tap(r, o->number);
    else if (o->style == CHECK_JSON)
        print_json(r);
    else
        print_text(r);
    fflush(stdout);
}

void check_output_end(const struct check_output *o, const struct check_summary *s,
                      bool complete)
{
    if (o->style == CHECK_TAP)
        tool_print(complete ? "1..%d\n" : "Bail out!\n", o->number);
    else if (o->style == CHECK_TEXT && complete)
        tool_print("%d passed, %d failed, %d skipped; seed %llu\n", s->passed, s->failed,
                   s->skipped, (unsigned long long)o->options->seed);
}
