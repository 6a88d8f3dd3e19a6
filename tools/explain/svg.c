/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan as one SVG file without scripts, fonts or links: time as heat, formats as
 * colours of the edges, conversions in magenta. Tool tips hold what did not fit.
 */
#include "tools/explain/explain.h"

#include <math.h>
#include <string.h>

enum { BOX_HEIGHT = 42, HEADER = 84, MARGIN = 30, TEXT_MAX = 44, SWATCH_WIDTH = 150 };

/* Of formats, in the order in which they appear. */
static const char *const palette[] = {"#2563eb", "#0f9d58", "#b45309", "#7c3aed",
                                      "#0891b2", "#4d7c0f", "#be123c", "#475569"};

static const struct {
    const char *fill, *stroke, *text;
} styles[] = {
    [VERTEX_INPUT] = {"#e2e8f0", "#475569", "#0f172a"},
    [VERTEX_NODE] = {"#ffffff", "#64748b", "#0f172a"},
    [VERTEX_REFORMAT] = {"#d6006c", "#86003f", "#ffffff"},
    [VERTEX_RELABEL] = {"#f1f5f9", "#94a3b8", "#475569"},
    [VERTEX_OUTPUT] = {"#e2e8f0", "#475569", "#0f172a"},
};

/* ---- text
 * ------------------------------------------------------------------------------ */

/* Bytes of the UTF-8 character at p; 0 where it is malformed. */
static int character_length(const unsigned char *p)
{
    int n = *p < 0x80 ? 1 : (*p & 0xE0) == 0xC0 ? 2 : (*p & 0xF0) == 0xE0 ? 3 : 4;
    if ((*p & 0xC0) == 0x80 || *p >= 0xF5 || *p == 0xC0 || *p == 0xC1)
        return 0;
    if ((*p == 0xE0 && p[1] < 0xA0) || (*p == 0xED && p[1] >= 0xA0) ||
        (*p == 0xF0 && p[1] < 0x90) || (*p == 0xF4 && p[1] >= 0x90))
        return 0; /* too long a form, a surrogate, or past the last character */
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return n;
}

/* Escaped, cut at `most` characters; what XML does not allow becomes '?'. */
static void put_text(const char *text, int most, FILE *out)
{
    const unsigned char *p = (const unsigned char *)text;
    for (int i = 0; *p; i++) {
        int n = character_length(p);
        if (i == most) {
            fputs("…", out);
            return;
        }
        if (n == 0 || (*p < 0x20 && *p != '\n'))
            fputc('?', out);
        else if (*p == '<' || *p == '>' || *p == '&' || *p == '"')
            fputs(*p == '<'   ? "&lt;"
                  : *p == '>' ? "&gt;"
                  : *p == '&' ? "&amp;"
                              : "&quot;",
                  out);
        else
            fprintf(out, "%.*s", n, (const char *)p);
        p += n ? n : 1;
    }
}

static int width_of(const char *text)
{
    int n = 0;
    for (const unsigned char *p = (const unsigned char *)text; *p; n++)
        p += character_length(p) ? character_length(p) : 1;
    return n < TEXT_MAX ? n : TEXT_MAX + 1;
}

static void measure(struct graph *g)
{
    for (size_t i = 0; i < g->n_vertices; i++) {
        struct vertex *v = &g->vertices[i];
        double title = 7.4 * width_of(v->title), detail = 6.2 * width_of(v->detail);
        v->width = ceil((title > detail ? title : detail) + 20);
        v->height = BOX_HEIGHT;
    }
}

/* ---- edges
 * ----------------------------------------------------------------------------- */

/* Colour of a format: the palette in order of first appearance among the edges. */
static size_t format_number(const struct graph *g, int format)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < g->n_edges && g->edges[i].format != format; i++)
        seen |= UINT64_C(1) << g->edges[i].format;
    return (size_t)__builtin_popcountll(seen);
}

static const char *colour(const struct graph *g, int format)
{
    return palette[format_number(g, format) % ARRAY_LENGTH(palette)];
}

/* Down out of a column, up beside it, and into the next from above. */
static void put_lane(const struct layout *l, double lane, int column, double tx,
                     double ty, FILE *out)
{
    double top = ((double)l->columns[column].lanes - lane) * LANE;
    fprintf(out, "V%.1fH%.1fV%.1fH%.1fV%.1f", l->height - top,
            l->columns[column].right + MARGIN / 2.0 + lane * LANE, top, tx, ty);
}

/* Between layers a curve that leaves and arrives vertically; through them, straight. */
static void put_path(const struct layout *l, const struct graph *g, size_t at, FILE *out)
{
    const struct edge *e = &g->edges[at];
    const struct place *from = &l->places[e->from], *to = &l->places[e->to];
    double x = from->x, y = from->y + BOX_HEIGHT / 2.0;
    int bends = to->layer - from->layer - 1;
    fprintf(out, "M%.1f %.1f", x, y);
    for (int i = 0, column = from->column; i <= bends; i++) {
        const struct place *p = i == bends ? to : &l->places[l->first_bend[at] + i];
        double ty = p->y - BOX_HEIGHT / 2.0, middle = (y + ty) / 2;
        if (p->column == column)
            fprintf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, p->x, middle, p->x,
                    ty);
        else
            put_lane(l, (double)layout_lane(l, g, at, column), column, p->x, ty, out);
        column = p->column;
        x = p->x;
        y = ty;
        if (i < bends)
            fprintf(out, "V%.1f", y += BOX_HEIGHT);
    }
}

static void put_edges(const struct layout *l, const struct graph *g, FILE *out)
{
    for (size_t i = 0; i < g->n_edges; i++) {
        fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
                colour(g, g->edges[i].format));
        put_path(l, g, i, out);
        fputs("\"/>\n", out);
    }
}

/* One label for each vertex and format that leaves it. */
static void put_formats(const struct graph *g, FILE *out)
{
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct edge *e = &g->edges[i];
        const struct vertex *v = &g->vertices[e->from];
        bool again = false;
        for (size_t j = 0; j < i; j++)
            again |= g->edges[j].from == e->from && g->edges[j].format == e->format;
        if (again)
            continue;
        fprintf(out, "<text class=\"format\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">",
                v->x + 6, v->y + BOX_HEIGHT / 2.0 + 15, colour(g, e->format));
        fprintf(out, "%s</text>\n", format_mask_name(UINT64_C(1) << e->format, e->rank));
    }
}

/* ---- vertices
 * -------------------------------------------------------------------------- */

/* From white to amber by share of the slowest node; the square root shows small ones. */
static void put_fill(const struct vertex *v, int64_t slowest, FILE *out)
{
    double heat = slowest > 0 ? sqrt((double)v->cost / (double)slowest) : 0;
    if (v->kind == VERTEX_NODE)
        fprintf(out, "#%02x%02x%02x", 255, (int)(255 - 71 * heat),
                (int)(255 - 181 * heat));
    else
        fputs(styles[v->kind].fill, out);
}

static void put_vertex(const struct vertex *v, int64_t slowest, FILE *out)
{
    bool round = v->kind == VERTEX_INPUT || v->kind == VERTEX_OUTPUT;
    fputs("<g><title>", out);
    put_text(v->title, -1, out);
    fputs("\n", out);
    put_text(v->detail, -1, out);
    fputs(*v->hint ? "\n" : "", out);
    put_text(v->hint, -1, out);
    fprintf(out,
            "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" "
            "rx=\"%d\" stroke=\"%s\" stroke-width=\"%s\" fill=\"",
            v->x - v->width / 2, v->y - BOX_HEIGHT / 2.0, v->width, BOX_HEIGHT,
            round ? BOX_HEIGHT / 2 : 6, styles[v->kind].stroke,
            v->kind == VERTEX_REFORMAT ? "2.5" : "1.2");
    put_fill(v, slowest, out);
    fprintf(out, "\"/><text class=\"title\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", v->x,
            v->y - 4, styles[v->kind].text);
    put_text(v->title, TEXT_MAX, out);
    fprintf(out, "</text><text class=\"detail\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", v->x,
            v->y + 13, styles[v->kind].text);
    put_text(v->detail, TEXT_MAX, out);
    fputs("</text></g>\n", out);
}

/* ---- the file
 * -------------------------------------------------------------------------- */

static const char style[] =
    "<style>text{font-family:system-ui,'DejaVu Sans',Arial,sans-serif}"
    ".head{font-size:18px;font-weight:bold}.sum{font-size:12px}"
    ".title{font-size:12px;font-weight:bold;text-anchor:middle}"
    ".detail{font-size:11px;text-anchor:middle}"
    ".format{font-size:10px;stroke:#fff;stroke-width:3px;paint-order:stroke}"
    ".key{font-size:11px}</style>\n";

static void put_swatch(double x, const char *fill, const char *text, FILE *out)
{
    fprintf(out,
            "<rect x=\"%.1f\" y=\"58\" width=\"18\" height=\"8\" fill=\"%s\"/>"
            "<text class=\"key\" x=\"%.1f\" y=\"66\">",
            x, fill, x + 24);
    put_text(text, TEXT_MAX, out);
    fputs("</text>\n", out);
}

static size_t count_formats(const struct graph *g, bool draw, FILE *out)
{
    uint64_t seen = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_edges; i++) {
        const struct edge *e = &g->edges[i];
        if (seen & UINT64_C(1) << e->format)
            continue;
        seen |= UINT64_C(1) << e->format;
        n++;
        if (draw)
            put_swatch(16 + (double)n * SWATCH_WIDTH, colour(g, e->format),
                       format_mask_name(UINT64_C(1) << e->format, e->rank), out);
    }
    return n;
}

static void put_header(const struct graph *g, const strata_engine *e, FILE *out)
{
    int64_t spent = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n_vertices; i++)
        if (g->vertices[i].kind == VERTEX_REFORMAT) {
            spent += g->vertices[i].cost;
            n++;
        }
    fputs("<text class=\"head\" x=\"16\" y=\"26\">", out);
    put_text(e->network->name ? e->network->name : e->network->path, TEXT_MAX, out);
    fprintf(
        out,
        "</text>\n<text class=\"sum\" x=\"16\" y=\"45\">%zu nodes · predicted %.1f us "
        "· %zu reformats, %.1f us</text>\n",
        e->execution->n_nodes, explain_microseconds(execution_predicts(e->execution)), n,
        explain_microseconds(spent));
    put_swatch(16, styles[VERTEX_REFORMAT].fill, "reformat", out);
    count_formats(g, true, out);
}

static int64_t slowest_node(const struct graph *g)
{
    int64_t slowest = 0;
    for (size_t i = 0; i < g->n_vertices; i++)
        if (g->vertices[i].kind == VERTEX_NODE && g->vertices[i].cost > slowest)
            slowest = g->vertices[i].cost;
    return slowest;
}

int graph_write_svg(struct graph *g, const strata_engine *e, FILE *out, strata_error *err)
{
    struct layout l;
    measure(g);
    int status = layout_make(&l, g, err);
    if (status != STRATA_OK)
        return status;
    double key = 32 + (double)(count_formats(g, false, out) + 1) * SWATCH_WIDTH;
    double width = l.width > key ? l.width : key;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "viewBox=\"0 0 %.0f %.0f\">\n%s"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, l.height + HEADER, width, l.height + HEADER, style);
    put_header(g, e, out);
    fprintf(out, "<g transform=\"translate(%.1f %d)\">\n", (width - l.width) / 2, HEADER);
    put_edges(&l, g, out);
    put_formats(g, out);
    int64_t slowest = slowest_node(g);
    for (size_t i = 0; i < g->n_vertices; i++)
        put_vertex(&g->vertices[i], slowest, out);
    fputs("</g>\n</svg>\n", out);
    layout_free(&l);
    return STRATA_OK;
}
