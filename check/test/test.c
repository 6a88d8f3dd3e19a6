/* SPDX-License-Identifier: Apache-2.0
 *
 * What every test of a process calls: findings, and where it is.
 */
#include "check/test/test.h"

#include <stdio.h>
#include <string.h>

const struct check_allocations *check_allocations;

void copy_text(char *to, size_t size, const char *from)
{
    const size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = '\0';
}

void check_found(struct check_child *c, const char *rule, const char *format, ...)
{
    struct check_report *r = c->report;
    va_list args;
    for (size_t i = 0; i < r->n_findings; i++)
        if (strcmp(r->findings[i].rule, rule) == 0 &&
            strcmp(r->findings[i].place.impl, r->place.impl) == 0)
            return;
    if (r->n_findings == CHECK_FINDINGS)
        return;
    struct check_finding *f = &r->findings[r->n_findings];
    snprintf(f->rule, sizeof f->rule, "%s", rule);
    f->place = r->place;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    r->n_findings++;
}

void check_note(struct check_child *c, const char *format, ...)
{
    char *note = c->report->note;
    const size_t size = sizeof c->report->note, used = strlen(note);
    va_list args;
    va_start(args, format);
    snprintf(note + used, size - used, "%s", used ? "; " : "");
    vsnprintf(note + strlen(note), size - strlen(note), format, args);
    va_end(args);
}

void check_environment(struct check_child *c, bool loading)
{
    char text[1024];
    const char *rule = environment_compare(&c->before, loading, text, sizeof text);
    if (rule)
        check_found(c, rule, "%s", text);
}

void check_place_at(const struct trial *t, void *user)
{
    struct check_child *c = user;
    struct check_place *p = &c->report->place;
    check_environment(c, false); /* of what ran before, there */
    snprintf(p->impl, sizeof p->impl, "%s", t->impl ? t->impl->impl.name : "");
    snprintf(p->attrs, sizeof p->attrs, "%s", t->attrs);
    snprintf(p->variant, sizeof p->variant, "%s", t->variant ? t->variant : "");
    trial_formats(t, p->formats, sizeof p->formats);
    trial_shapes(t, p->shapes, sizeof p->shapes);
}

void check_problem(const struct trial *t, const char *rule, const char *text, void *user)
{
    check_place_at(t, user);
    check_found(user, rule, "%s", text);
}
