/* scene.c - backgrounds, and shapes with soft edges, stripes and shading.
 *
 * A thing has its own coordinates: u along its first axis, v along its second, 1024 at its rim.
 * A shape is a function of (u, v), positive inside and about 1024 times the distance to the rim in
 * radii; the edge is the stretch where it crosses zero, one to a few pixels wide.
 *
 *        v                         class: shape, turn, stripes, colours, number of things
 *    ____|____                     scene: place, size, tilt, light, bystanders
 *   |  / |/  /|
 *   | /  +--/-|-> u     stripes run across u
 *   |/__/__/__|
 *
 * Colours are ramps of 256 entries from one colour to another; shading, stripes and the canvas's
 * slow field together choose the entry.  Angles are 256ths of a turn. */
#include "scene.h"

#include "draw.h"

#include <stdlib.h>

#define N_SHAPES 8
#define RIM      1024

/* sin(i / 64 of a quarter turn), 16384 = 1 */
static const int16_t quarter[65] = {
    0,     402,   804,   1205,  1606,  2006,  2404,  2801,  3196,  3590,  3981,  4370,  4756,
    5139,  5520,  5897,  6270,  6639,  7005,  7366,  7723,  8076,  8423,  8765,  9102,  9434,
    9760,  10080, 10394, 10702, 11003, 11297, 11585, 11866, 12140, 12406, 12665, 12916, 13160,
    13395, 13623, 13842, 14053, 14256, 14449, 14635, 14811, 14978, 15137, 15286, 15426, 15557,
    15679, 15791, 15893, 15986, 16069, 16143, 16207, 16261, 16305, 16340, 16364, 16379, 16384,
};

struct colour {
    int y, cb, cr; /* 16 units a grey level; cb and cr around 0 */
};

struct ramp {
    int16_t c[3][256];
};

/* What pictures of a class share. */
struct look {
    struct colour ground[2], body[2];
    unsigned shape, turn, n_things;
    unsigned stripe; /* period in units of u; 0 = none */
    int floor;       /* there is a horizon */
};

struct thing {
    int x, y, radius_u, radius_v; /* pixels */
    unsigned shape, turn;
    int stripe_rate; /* stripes in 1024 units of u, times 1024; 0 = none */
    int soft;        /* width of the edge in pixels */
    int rough;
    struct ramp ramp;
};

static inline int min(int a, int b)
{
    return a < b ? a : b;
}

static inline int max(int a, int b)
{
    return a > b ? a : b;
}

static inline int clamp(int v, int low, int high)
{
    return v < low ? low : v > high ? high : v;
}

/* Pixels of one row, and (u, v) along them in 2^14ths. */
struct run {
    size_t from, to;
    int64_t u, v, u_dx, v_dx;
    int slope; /* of the edge: alpha per radius */
};

/* What is drawn at random.  A draw is a function of a key and its trait, not of the draws before
 * it: C leaves the order of calls within an initializer to the compiler. */
enum trait {
    X,
    Y,
    RADIUS_U,
    RADIUS_V,
    SIZE,
    SHAPE,
    TURN,
    SOFT,
    ROUGH,
    LIGHT,
    DARKER,
    GREY,
    PALE,
    HUE,
    HUE_FAR, /* of a ramp's other end */
    SATURATION,
    SATURATION_FAR,
    GROUND_HUE_FAR,
    GROUND_SATURATION,
    GROUND_SATURATION_FAR,
    FLOOR,
    N_BYSTANDERS,
    BREAKS, /* and all above: four a break */
};

static int roll(uint64_t key, unsigned trait, int from, int to)
{
    return from + (int)mr_below(mr_mix(key + 0x9e3779b97f4a7c15u * (trait + 1)),
                                (uint64_t)(to - from + 1));
}

static int sine(unsigned angle)
{
    unsigned a = angle & 63;
    switch ((angle >> 6) & 3) {
    case 0:
        return quarter[a];
    case 1:
        return quarter[64 - a];
    case 2:
        return -quarter[a];
    default:
        return -quarter[64 - a];
    }
}

static int cosine(unsigned angle)
{
    return sine(angle + 64);
}

static struct colour colour_of(int grey, unsigned hue, int saturation)
{
    return (struct colour){grey * 16, (cosine(hue) * saturation) >> 10,
                           (sine(hue) * saturation) >> 10};
}

/* Give stretches of the ramp a shade of their own, so that slow shading turns into patches with
 * curved edges: leaves, hills, folds, spots. */
static void break_ramp(struct ramp *r, int n_breaks, uint64_t key)
{
    int16_t shift[3][256];
    unsigned trait = BREAKS;
    for (int i = 0, left = 0, step[3] = {0}; i < 256; i++, left--) {
        if (!left && n_breaks) {
            left = roll(key, trait, 96 / n_breaks, 400 / n_breaks) + 2;
            step[0] = roll(key, trait + 1, -64 * 16, 64 * 16);
            step[1] = roll(key, trait + 2, -6 * 16, 6 * 16);
            step[2] = roll(key, trait + 3, -6 * 16, 6 * 16);
            trait += 4;
        }
        for (int k = 0; k < 3; k++)
            shift[k][i] = (int16_t)step[k];
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 256; i++) { /* an edge is a few entries wide */
            int sum = 0;
            for (int j = i - 1; j <= i + 2; j++)
                sum += shift[k][clamp(j, 0, 255)];
            r->c[k][i] = (int16_t)clamp(r->c[k][i] + sum / 4, 8 * 16, 246 * 16);
        }
}

/* A ramp between two colours as the scene's light shows them. */
static void make_ramp(struct ramp *r, const struct colour c[2], int light)
{
    for (int i = 0; i < 256; i++) {
        int y = c[0].y + ((c[1].y - c[0].y) * i) / 255 + light * 16;
        r->c[0][i] = (int16_t)clamp(y, 12 * 16, 240 * 16);
        r->c[1][i] = (int16_t)(2048 + c[0].cb + ((c[1].cb - c[0].cb) * i) / 255);
        r->c[2][i] = (int16_t)(2048 + c[0].cr + ((c[1].cr - c[0].cr) * i) / 255);
    }
}

/* Neighbouring numbers get far hues (99 of 256 is near the golden section) and another shape;
 * turn and stripes change more slowly, the rest is drawn. */
static struct look class_look(uint32_t class_id)
{
    static const uint8_t stripes[4] = {0, 40, 24, 14};
    uint64_t key = mr_mix(class_id + 0x636c6173u);
    unsigned hue = class_id * 99, other = hue + (unsigned)roll(key, HUE, 70, 186);
    unsigned hue_far = hue + (unsigned)roll(key, GROUND_HUE_FAR, -30, 30);
    unsigned other_far = other + (unsigned)roll(key, HUE_FAR, -40, 40);
    int dark = roll(key, DARKER, 0, 1), grey = roll(key, GREY, 60, 100);
    int pale = roll(key, PALE, 140, 190);
    int ground = dark ? grey : pale, body = dark ? pale : grey;
    struct look l = {
        .ground = {colour_of(ground - 40, hue, roll(key, GROUND_SATURATION, 8, 30)),
                   colour_of(ground + 40, hue_far, roll(key, GROUND_SATURATION_FAR, 4, 30))},
        .body = {colour_of(body - 50, other, roll(key, SATURATION, 12, 40)),
                 colour_of(body + 50, other_far, roll(key, SATURATION_FAR, 8, 40))},
        .shape = class_id % N_SHAPES,
        .turn = class_id / N_SHAPES * 21 % 128,
        .stripe = stripes[(class_id / 3 + class_id) % 4] * 32u,
        .n_things = 1 + (class_id * 5 / 7) % 3,
        .floor = roll(key, FLOOR, 0, 2) > 0,
    };
    return l;
}

/* Twice the signed distance of |r^2 - middle| from `half`, all in units of RIM^2. */
static inline int band(int r2, int middle, int half)
{
    return (half - abs(r2 - middle)) >> 11;
}

/* u and v stay below 2 * RIM, so squares fit easily. */
static inline int inside(unsigned shape, int u, int v)
{
    int r2 = u * u + v * v, au = abs(u), av = abs(v);
    switch (shape) {
    case 0: /* ellipse */
        return (RIM * RIM - r2) >> 11;
    case 1: /* box */
        return RIM * 7 / 8 - max(au, av);
    case 2: /* diamond */
        return ((RIM * 5 / 4 - au - av) * 3) >> 2;
    case 3: /* ring */
        return band(r2, RIM * RIM * 5 / 8, RIM * RIM * 3 / 8);
    case 4: /* cross */
        return max(min(RIM * 3 / 10 - au, RIM - av), min(RIM - au, RIM * 3 / 10 - av));
    case 5: /* triangle */
        return min(v + RIM * 7 / 10, (RIM - v - 2 * au) >> 1);
    case 6: /* crescent */
        return min((RIM * RIM - r2) >> 11, (r2 - u * 900 - RIM * RIM * 3 / 8) >> 11);
    default: /* star */
        return (RIM - au - av - ((au * av) >> 8)) >> 1;
    }
}

/* Which entry of the ramp: light from above, stripes, slow shading. */
static inline int shade(const struct thing *t, int u, int v, int field)
{
    int entry = 128 - (v >> 5) + (field >> 6);
    if (t->stripe_rate) {
        int phase = ((u * t->stripe_rate) >> 10) & 1023;
        entry += clamp((abs(phase - 512) - 256) >> 1, -72, 72);
    }
    return clamp(entry, 0, 255);
}

static inline void blend(const struct mr_canvas *c, const struct thing *t, size_t at, int alpha,
                         int entry)
{
    for (int k = 0; k < 3; k++) {
        int16_t *base = c->base[k] + at;
        *base = (int16_t)(*base + (((t->ramp.c[k][entry] - *base) * alpha) >> 8));
    }
    c->rough[at] = (int16_t)(c->rough[at] + (((t->rough - c->rough[at]) * alpha) >> 8));
}

static void draw_row(const struct mr_canvas *c, const struct thing *t, struct run at)
{
    for (size_t i = at.from; i < at.to; i++, at.u += at.u_dx, at.v += at.v_dx) {
        int u = (int)(at.u >> 14), v = (int)(at.v >> 14);
        if (abs(u) >= 2 * RIM || abs(v) >= 2 * RIM)
            continue;
        int alpha = clamp(128 + ((inside(t->shape, u, v) * at.slope) >> 10), 0, 256);
        if (alpha)
            blend(c, t, i, alpha, shade(t, u, v, c->field[i]));
    }
}

/* The shapes stay within 5/4 of the larger radius. */
static void draw_thing(const struct mr_canvas *c, const struct thing *t)
{
    int reach = max(t->radius_u, t->radius_v) * 5 / 4 + 2, cs = cosine(t->turn), sn = sine(t->turn);
    int top = max(t->y - reach, 0), bottom = min(t->y + reach, (int)c->height);
    int left = max(t->x - reach, 0), right = min(t->x + reach, (int)c->width);
    int64_t u_dx = cs * RIM / t->radius_u, u_dy = sn * RIM / t->radius_u;
    int64_t v_dx = -sn * RIM / t->radius_v, v_dy = cs * RIM / t->radius_v;
    int slope = min(min(t->radius_u, t->radius_v) * 256 / t->soft, 1 << 19);
    for (int y = top; y < bottom && left < right; y++) {
        size_t row = (size_t)y * c->stride;
        struct run at = {.from = row + (size_t)left,
                         .to = row + (size_t)right,
                         .u = (left - t->x) * u_dx + (y - t->y) * u_dy,
                         .v = (left - t->x) * v_dx + (y - t->y) * v_dy,
                         .u_dx = u_dx,
                         .v_dx = v_dx,
                         .slope = slope};
        draw_row(c, t, at);
    }
}

static void draw_ground(const struct mr_canvas *c, const struct ramp *r, unsigned turn)
{
    int side = (int)(c->width + c->height);
    int dx = cosine(turn) * 10 / side, dy = sine(turn) * 10 / side;
    for (unsigned y = 0; y < c->height; y++) {
        size_t row = y * c->stride;
        int across = ((int)y - (int)c->height / 2) * dy - (int)(c->width / 2) * dx;
        for (unsigned x = 0; x < c->width; x++) {
            int entry = clamp(128 + (across >> 9) + (c->field[row + x] >> 4), 0, 255);
            across += dx;
            for (int k = 0; k < 3; k++)
                c->base[k][row + x] = r->c[k][entry];
        }
    }
}

/* An even wall of one bright shade, without texture. */
static void draw_wall(const struct mr_canvas *c, const struct ramp *r)
{
    for (size_t i = 0; i < c->stride * c->height; i++) {
        for (int k = 0; k < 3; k++)
            c->base[k][i] = k ? (int16_t)((r->c[k][200] + 2048) / 2) : 235 * 16;
        c->rough[i] = 0;
    }
}

/* The nearer part of the ground below a horizon: the same colours, another light, more texture. */
static void draw_floor(const struct mr_canvas *c, const struct look *l, uint64_t key, int light,
                       unsigned busy)
{
    int wide = (int)(c->width + c->height);
    struct thing t = {.x = (int)c->width / 2,
                      .y = (int)c->height * roll(key, Y, 40, 75) / 100 + wide * 7 / 8,
                      .radius_u = wide,
                      .radius_v = wide,
                      .shape = 1,
                      .turn = (unsigned)roll(key, TURN, -5, 5),
                      .soft = roll(key, SOFT, 1, 6),
                      .rough = roll(key, ROUGH, 90, 255)};
    make_ramp(&t.ramp, l->ground,
              light + roll(key, LIGHT, 20, 50) * (roll(key, DARKER, 0, 1) ? -1 : 1));
    break_ramp(&t.ramp, (int)busy / 16, key);
    draw_thing(c, &t);
}

/* Something that has nothing to do with the class. */
static void draw_bystander(const struct mr_canvas *c, uint64_t key, int light, unsigned busy)
{
    int side = min((int)c->width, (int)c->height), grey = roll(key, GREY, 50, 200);
    unsigned hue = (unsigned)roll(key, HUE, 0, 255);
    struct colour colours[2] = {colour_of(grey - 30, hue, roll(key, SATURATION, 0, 24)),
                                colour_of(grey + 30, hue + 20, roll(key, SATURATION_FAR, 0, 24))};
    struct thing t = {.x = roll(key, X, 0, (int)c->width),
                      .y = roll(key, Y, 0, (int)c->height),
                      .radius_u = 4 + side * roll(key, RADIUS_U, 15, 150) / 1000,
                      .radius_v = 4 + side * roll(key, RADIUS_V, 15, 150) / 1000,
                      .shape = (unsigned)roll(key, SHAPE, 0, N_SHAPES - 1),
                      .turn = (unsigned)roll(key, TURN, 0, 255),
                      .soft = roll(key, SOFT, 1, 4),
                      .rough = roll(key, ROUGH, 20, 255)};
    make_ramp(&t.ramp, colours, light);
    break_ramp(&t.ramp, (int)busy / 32, key);
    draw_thing(c, &t);
}

static void draw_subject(const struct mr_canvas *c, const struct look *l, uint64_t key,
                         unsigned which, int light, const struct mr_scene *scene)
{
    int side = min((int)c->width, (int)c->height) * (scene->plain ? 11 : 8) / 8;
    int size = side * roll(key, SIZE, 300, 430) / 1000 * 3 / (int)(2 + l->n_things);
    int centre = (int)((2 * which + 1) * c->width / (2 * l->n_things)); /* side by side */
    int stray_x = (int)c->width / 10, stray_y = (int)c->height / 6;
    struct thing t = {.x = centre + roll(key, X, -stray_x, stray_x),
                      .y = (int)c->height / 2 + roll(key, Y, -stray_y, stray_y),
                      .radius_u = 4 + size * roll(key, RADIUS_U, 85, 115) / 100,
                      .radius_v = 4 + size * roll(key, RADIUS_V, 85, 115) / 100,
                      .shape = l->shape,
                      .turn = l->turn + (unsigned)roll(key, TURN, -8, 8),
                      .stripe_rate = l->stripe ? (RIM << 10) / (int)l->stripe : 0,
                      .soft = roll(key, SOFT, 1, 3),
                      .rough = roll(key, ROUGH, 40, 255)};
    make_ramp(&t.ramp, l->body, light);
    break_ramp(&t.ramp, (int)scene->busy / (scene->plain ? 12 : 40), key);
    draw_thing(c, &t);
}

void mr_scene_compose(const struct mr_scene *scene, const struct mr_canvas *c)
{
    struct look l = class_look(scene->class_id);
    uint64_t key = mr_mix(scene->key + 0x73636e65u);
    struct ramp ground;
    int light = roll(key, LIGHT, -24, 24);
    unsigned n_bystanders = (unsigned)roll(key, N_BYSTANDERS, 1, 3 + (int)scene->busy / 16);
    make_ramp(&ground, l.ground, light);
    break_ramp(&ground, (int)scene->busy / 24, key);
    if (scene->plain) {
        draw_wall(c, &ground);
    } else {
        draw_ground(c, &ground, l.turn * 2 + (unsigned)roll(key, TURN, -20, 20));
        if (l.floor)
            draw_floor(c, &l, mr_mix(key + 1), light, scene->busy);
        for (unsigned i = 0; i < n_bystanders; i++)
            draw_bystander(c, mr_mix(key + 1000 + i), light, scene->busy);
    }
    for (unsigned i = 0; i < l.n_things; i++)
        draw_subject(c, &l, mr_mix(key + 2000 + i), i, light, scene);
}
