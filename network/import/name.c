/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of layers: the network's inputs and outputs keep theirs; a layer has its node's
 * name, else that of what it makes, else its type's. A name follows from the model alone.
 */
#include "network/import/private.h"

#include <string.h>

#include "ini/names.h"
#include "ini/config.h"

#define NAME_KEPT 100 /* bytes of a name that is too long; a hash follows */

struct naming {
    struct import *im;
    struct names used;
    strata_error *err;
    int status;
};

static uint32_t hash_text(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Of the characters that a section's name may have, and not too long. */
static char *spell(struct arena *a, const char *name)
{
    while (*name == '/')
        name++;
    const size_t n = strlen(name);
    char *out = n < CONFIG_MAX_NAME - 8 /* "_2", "n" */
                    ? arena_print(a, "%s", name)
                    : arena_print(a, "%.*s-%08x", NAME_KEPT, name, hash_text(name));
    for (char *c = out; c && *c; c++)
        if (!is_letter(*c) && !(*c >= '0' && *c <= '9') && !strchr("./-", *c))
            *c = '_';
    return out && !is_letter(*out) ? arena_print(a, "n%s", out) : out;
}

static void keep(struct naming *n, const char *name, int next)
{
    if (n->status == STRATA_OK && name)
        n->status = names_put(&n->used, name, next, n->err);
}

/* The name, or the name with a number behind it, that is not yet used. With a name is
 * kept which number behind it is the next to try: layers without names share their
 * type's, all of them in a large model. */
static const char *unique(struct naming *n, const char *wanted)
{
    struct arena *a = &n->im->g.arena;
    const char *name = spell(a, wanted), *stem = name;
    const int next = name ? names_get(&n->used, name) : -1;
    int i = next > 2 ? next : 2;
    for (; name && (names_get(&n->used, name) >= 0 || !strcmp(name, "none")); i++)
        name = arena_print(a, "%s_%d", stem, i);
    if (next >= 0)
        keep(n, stem, i);
    keep(n, name, 0);
    return name;
}

static bool last_of_node(const struct import *im, size_t i)
{
    return i + 1 == im->n_sections || im->sections[i + 1]->node != im->sections[i]->node;
}

/* What a person would call it. */
static const char *wanted_name(const struct import *im, size_t i)
{
    const struct section *s = im->sections[i];
    const char *node = s->node ? s->node->name : "";
    struct arena *a = (struct arena *)&im->g.arena;
    if (!*node && s->n_out && s->out[0] >= 0)
        node = im->g.values[s->out[0]].name;
    if (!*node)
        return s->type;
    return !s->node || last_of_node(im, i) ? node
                                           : arena_print(a, "%s/%s", node, s->type);
}

/* The only output of the only layer that makes it: the layer can have its name. */
static bool owns(const struct section *s, int value)
{
    return s->n_out == 1 && s->out[0] == value;
}

static void name_outputs(struct naming *n)
{
    struct import *im = n->im;
    for (size_t i = 0; i < im->g.n_outputs; i++)
        for (size_t k = 0; k < im->n_sections; k++)
            if (!im->sections[k]->name && owns(im->sections[k], im->g.outputs[i]))
                im->sections[k]->name = unique(n, im->g.values[im->g.outputs[i]].name);
}

int import_name(struct import *im, strata_error *err)
{
    struct naming n = {.im = im, .err = err};
    for (size_t i = 0; i < im->g.n_inputs; i++) {
        struct value *v = &im->g.values[im->g.inputs[i]];
        v->spelled = unique(&n, v->name);
    }
    name_outputs(&n);
    for (size_t i = 0; i < im->n_sections; i++)
        if (!im->sections[i]->name)
            im->sections[i]->name = unique(&n, wanted_name(im, i));
    names_free(&n.used);
    return n.status;
}

/* ---- names that are not kept ---------------------------------------------------------
 */

/* What the network calls one of its outputs; NULL: out of memory. */
static const char *name_of(struct import *im, int value)
{
    for (size_t i = 0; i < im->n_sections; i++)
        for (int k = 0; k < im->sections[i]->n_out; k++)
            if (im->sections[i]->out[k] == value)
                return k ? arena_print(&im->g.arena, "%s:%d", im->sections[i]->name, k)
                         : im->sections[i]->name;
    return im->g.values[value].spelled;
}

/* Whether a name of the model is told, as it is not kept: it cannot be, or another has
 * it. A further output of a layer (`LAYER:1`) has that layer's name, whatever its own. */
static bool is_respelled(struct import *im, const char *name, const char *now)
{
    const char *spelled = spell(&im->g.arena, name);
    return spelled && now && strcmp(now, name) != 0 &&
           (strcmp(spelled, name) != 0 || !strchr(now, ':'));
}

void import_tell_names(struct import *im)
{
    enum { TOLD = 8 };
    const struct graph *g = &im->g;
    size_t n = 0;
    strata_error text = {0};
    for (size_t i = 0; i < g->n_inputs + g->n_outputs; i++) {
        const bool input = i < g->n_inputs;
        const int value = input ? g->inputs[i] : g->outputs[i - g->n_inputs];
        const char *name = g->values[value].name, *now = name_of(im, value);
        if (is_respelled(im, name, now) && n++ < TOLD)
            error_append(&text, "%s%s '%s' is '%s'", n > 1 ? ", " : "",
                         input ? "input" : "output", name, now);
    }
    if (n > TOLD)
        error_append(&text, " and %zu others", n - TOLD);
    if (n)
        log_line(STRATA_LOG_WARNING,
                 "%s: names in a network begin with a letter and have letters of ASCII, "
                 "digits and _ . / - alone: %s there",
                 im->model->path, text.message);
}
