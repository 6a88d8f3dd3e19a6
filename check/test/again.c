/* SPDX-License-Identifier: Apache-2.0
 *
 * The command that shows a finding again.
 */
#include <stdio.h>
#include <string.h>

#include "check/test/test.h"

static void put(char *text, size_t size, const char *value, size_t n)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%.*s", (int)n, value);
}

/* As one word of a shell. */
static void quote(char *text, size_t size, const char *value)
{
    put(text, size, "'", 1);
    for (size_t n; *value; value += n) {
        n = strcspn(value, "'");
        put(text, size, value, n);
        if (value[n] == '\'') {
            put(text, size, "'\\''", 4);
            n++;
        }
    }
    put(text, size, "'", 1);
}

static void add(char *text, size_t size, const char *option, const char *value)
{
    const size_t used = strlen(text);
    const bool plain =
        value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_-+./:,@=")] == '\0';
    if (!value[0] && option[0] != '-')
        return;
    snprintf(text + used, size - used, " %s%s", option, option[0] ? " " : "");
    if (plain && value[0])
        put(text, size, value, strlen(value));
    else
        quote(text, size, value);
}

void check_write_command(struct check_finding *f, const struct check_child *c,
                         const struct check_test *test)
{
    const struct check_options *o = c->o;
    const struct check_place *p = &f->place;
    const size_t size = sizeof f->command;
    char seed[32];
    snprintf(f->command, size, "%s", o->command ? o->command : "strata check");
    if (!o->command)
        add(f->command, size, "", o->file);
    if (o->allow_untrusted)
        add(f->command, size, "", "--allow-untrusted-plugins");
    for (size_t i = 0; i < o->n_others; i++)
        add(f->command, size, "--plugin", o->others[i]);
    if (o->plugin_path)
        add(f->command, size, "--plugin-path", o->plugin_path);
    add(f->command, size, "--test", test->name);
    if (c->layer_name[0])
        add(f->command, size, "--layer", c->layer_name);
    if (strncmp(c->device, "cuda", 4) == 0)
        add(f->command, size, "--device", c->device);
    if (p->impl[0])
        add(f->command, size, "--impl", p->impl);
    if (p->formats[0] && strcmp(p->formats, "->") != 0)
        add(f->command, size, "--formats", p->formats);
    if (p->shapes[0])
        add(f->command, size, "--shape", p->shapes);
    if (p->attrs[0] || o->n_attrs)
        add(f->command, size, "--attrs", p->attrs);
    if (test->scope != SCOPE_FILE) {
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
        add(f->command, size, "--reproduce", seed);
    }
}
