// prints: "default";r=50;t=30
// SPDX-License-Identifier: Apache-2.0
#include "../outside/main.cpp"
