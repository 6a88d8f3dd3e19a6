/* SPDX-License-Identifier: Apache-2.0
 *
 * A context's memory over a run: each tensor from the step that makes it to the last that
 * reads it, where the planner put it.
 */
#include "tools/profile/profile.h"

enum { WIDTH = 1180, HEIGHT = 320, LEFT = 64, RIGHT = 10, TOP = 10, BOTTOM = 40 };

struct frame {
    double step, byte; /* pixels of each */
};

static double at_step(const struct frame *f, double step)
{
    return LEFT + f->step * step;
}

static double at_byte(const struct frame *f, double byte)
{
    return HEIGHT - BOTTOM - f->byte * byte;
}

/* Hues far from each other for tensors that follow each other. */
static int hue(int number)
{
    return number * 137 % 360;
}

static void put_block(const struct frame *f, int first, int last, int64_t offset,
                      int64_t bytes, const char *name, const char *format,
                      const char *fill, FILE *out)
{
    const double width = f->step * (last + 1 - first), height = f->byte * (double)bytes;
    const double x = at_step(f, first), y = at_byte(f, (double)(offset + bytes));
    fprintf(out, "<g><title>");
    html_text(name, out);
    fprintf(out,
            " %s\n%.3f MiB at %.3f, steps %d to %d</title><rect x=\"%.1f\" y=\"%.1f\" "
            "width=\"%.1f\" height=\"%.1f\" fill=\"%s\" stroke=\"#fff\" "
            "stroke-width=\".7\"/>",
            format, (double)bytes / 1048576, (double)offset / 1048576, first, last, x, y,
            width, height, fill);
    if (width > 60 && height > 13) {
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\">", x + 4,
                y + height / 2 + 4);
        fprintf(out, "%.*s</text>", (int)(width / 6.5), name);
    }
    fputs("</g>\n", out);
}

static void put_values(const struct frame *f, const strata_engine *e, FILE *out)
{
    const struct execution *x = e->execution;
    char fill[32];
    for (size_t v = 0; v < x->n_values; v++) {
        const struct execution_value *value = &x->values[v];
        if (value->alias >= 0 || value->binding >= 0 || value->constant >= 0 ||
            value->last < 0)
            continue;
        snprintf(fill, sizeof fill, "hsl(%d 65%% 78%%)", hue(value->tensor));
        put_block(f, value->first, value->last, value->offset, value->bytes,
                  e->network->tensors[value->tensor].name,
                  explain_value_format(e, (int)v), fill, out);
    }
    for (size_t s = 0; s < x->n_steps; s++) {
        const struct execution_node *n =
            x->steps[s].kind == STEP_RUN ? &x->nodes[x->steps[s].node] : NULL;
        if (n && n->workspace)
            put_block(f, (int)s, (int)s, n->workspace_offset, (int64_t)n->workspace,
                      n->name, "workspace", "#94a3b8", out);
    }
}

static void put_level(const struct frame *f, int64_t bytes, const char *name,
                      const char *dash, FILE *out)
{
    const double y = at_byte(f, (double)bytes);
    fprintf(out,
            "<path d=\"M%d %.1fH%d\" stroke=\"#0f172a\" stroke-dasharray=\"%s\"/><text "
            "x=\"%d\" y=\"%.1f\" font-size=\"11\" text-anchor=\"end\">%s, %.2f MiB"
            "</text>\n",
            LEFT, y, WIDTH - RIGHT, dash, WIDTH - RIGHT - 4, y - 4, name,
            (double)bytes / 1048576);
}

/* Bytes alive, a stair. */
static void put_alive(const struct frame *f, const struct profile *p, FILE *out)
{
    fprintf(out,
            "<path fill=\"none\" stroke=\"#d6006c\" stroke-width=\"1.5\" d=\"M%d %.1f",
            LEFT, at_byte(f, 0));
    for (size_t s = 0; s < p->n; s++)
        fprintf(out, "V%.1fH%.1f", at_byte(f, (double)p->rows[s].step.live_bytes),
                at_step(f, (double)s + 1));
    fputs("\"/>\n", out);
}

static void put_scale(const struct frame *f, const struct profile *p, FILE *out)
{
    const int64_t arena = p->engine->execution->arena_bytes;
    const size_t every = p->n / 20 + 1;
    for (int i = 0; i <= 4; i++)
        fprintf(out,
                "<text x=\"%d\" y=\"%.1f\" font-size=\"11\" fill=\"#64748b\" "
                "text-anchor=\"end\">%.2f</text>",
                LEFT - 6, at_byte(f, (double)arena * i / 4) + 4,
                (double)arena * i / 4 / 1048576);
    for (size_t s = 0; s < p->n; s += every)
        fprintf(out,
                "<text x=\"%.1f\" y=\"%d\" font-size=\"11\" fill=\"#64748b\" "
                "text-anchor=\"middle\">%zu</text>",
                at_step(f, (double)s + 0.5), HEIGHT - BOTTOM + 15, s);
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" font-size=\"12\" fill=\"#64748b\" "
            "text-anchor=\"middle\">step</text><text x=\"14\" y=\"%d\" font-size=\"12\" "
            "fill=\"#64748b\" text-anchor=\"middle\" transform=\"rotate(-90 14 %d)\">MiB"
            "</text>\n",
            (LEFT + WIDTH) / 2, HEIGHT - 6, HEIGHT / 2, HEIGHT / 2);
}

void html_memory(const struct profile *p, FILE *out)
{
    const strata_engine *e = p->engine;
    /* a tenth above the arena for the words at its level */
    const struct frame f = {
        (double)(WIDTH - LEFT - RIGHT) / (double)(p->n ? p->n : 1),
        (HEIGHT - TOP - BOTTOM) /
            (1.1 * (double)(e->execution->arena_bytes ? e->execution->arena_bytes : 1))};
    fprintf(out,
            "<section><h2>Memory of a context</h2><p class=\"sub\">Tensors from the step "
            "that makes them to the last that reads them, where they lie; workspaces "
            "grey; the red line is what is in use at a step. Inputs and outputs have "
            "memory of their own.</p>\n<svg viewBox=\"0 0 %d %d\" width=\"100%%\">\n",
            WIDTH, HEIGHT);
    put_values(&f, e, out);
    put_scale(&f, p, out);
    put_alive(&f, p, out);
    put_level(&f, e->execution->arena_bytes, "the context", "none", out);
    fputs("</svg></section>\n", out);
}
