/* SPDX-License-Identifier: MIT */
/* record/bridge_source.c - bridge.py as a text; meson.build makes lines of C of it. */
extern const char tmk_bridge_source[];
const char tmk_bridge_source[] =
#include "bridge_py.inc"
    ;
