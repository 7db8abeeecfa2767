// SPDX-License-Identifier: MIT
/** What a page is made of: the object of `tidemark report --json` (the keys are documented in
 * docs/commands.md), and what is drawn. Sizes in bytes, times in ns; null: not known. */

export interface Row { key: string | null; bytes: number; blocks: number }

export interface Site {
  file: string | null; line: number | null; function: string | null;
}

export interface Leak extends Site {
  category: string | null; module: string | null; bytes_per_step: number | null;
  blocks_per_step: number | null; first_step: number | null; confidence: number | null;
  growth_bytes: number; device: string; kept_by: string | null; bytes_per_second: number | null;
  evidence?: string | null; source?: string | null; made_in?: unknown;
}

export interface Fix {
  text: string; saves_bytes: number | null; proof: string; kind: string; conf: string | null;
}

export interface Oom {
  time_ns: number; step: number | null; request_bytes: number; cause: string; device: string;
  stage: string | null; module: string | null; site: Site | null; evidence: Record<string, unknown>;
  fixes: Fix[]; text?: string | null;
}

export interface ReportOom extends Site {
  time_ns: number; step: number | null; device: string; request_bytes: number; allocated: number;
  capacity: number | null; module: string | null; stage: string | null;
}

export interface Process {
  file: string; pid: number | null; rank: number | null; world_size: number | null;
  host: string | null; command: string | null; start_ns: number; end_ns: number;
  trace_bytes: number; events: number; allocations: number; frees: number; live_blocks: number;
  live_bytes: number;
  peak: null | {
    time_ns: number; step: number | null; allocated: number; reserved: number | null;
    device: string; kept: null | { time_ns: number; step: number | null; allocated: number };
    parameters: null | { count: number; bytes: number; trained_bytes: number };
    by_category: Row[]; by_module: Row[]; by_component: Row[]; by_stage: Row[]; by_step: Row[];
    by_tensor: Row[]; by_line: Row[];
  };
  steps: { count: number; mean_ns: number; trend: string; bytes_per_step: number | null };
  forecast: null | {
    device: string; risk: string; seconds_to_oom: number | null; steps_to_oom: number | null;
    cause: string; capacity: number; advice: string[];
  };
  oom_count: number; ooms: ReportOom[];
  accounting: {
    device: string; moment: string; time_ns: number; total: number | null; used: number | null;
    segments: { owner: string; bytes: number; segments: number }[]; context: number | null;
    others: number | null; unexplained: number | null; allocated: number; reserved: number | null;
  }[];
  leak_verdict: "leak" | "clean" | null; leaks: Leak[]; leak_text: string | null;
  fragmentation: {
    device: string; time_ns: number; step: number | null; reserved: number | null;
    allocated: number; free: number | null; largest_free: number | null;
    largest_allocatable: number | null; releasable: number | null; pinned_segments: number | null;
  }[];
  mark_count: number;
  marks: { time_ns: number; step: number | null; name: string | null; text: string }[];
  quality: { complete: boolean; doubts: string[] };
}

export interface Health { verdict: string; text: string; next: string | null }

export interface Report {
  run: string; tidemark: string; started_utc: string; duration_ns: number; chosen: number;
  processes: Process[]; not_recorded: string[]; health: Health;
  ranks: null | Record<string, unknown>;
  explain: null | { ooms: Oom[] };
}

export interface Layer {
  device: number; by: string; key: string | null; others: number; column: string;
}

export interface Drawn {
  timeline: {
    offset_ns: number; start_ns: number; end_ns: number; known_ns: number; bins: number; devices: string[];
    layers: Layer[];
  };
  blocks: {
    all: number; shown: number; window_start_ns: number | null; window_end_ns: number | null;
  };
  peak: null | {
    time_ns: number; bytes: number; blocks: number; rows: number; rows_shown: number;
    bytes_shown: number; device: number;
  };
  map: null | { device: string; time_ns: number; segments: number; segments_shown: number };
  steps: { all: number; shown: number };
  processes: {
    file: string; rank: number | null; pid: number | null; host: string | null; start_ns: number;
    end_ns: number; peak: number | null; peak_ns: number | null; peak_step: number | null;
    device: string | null; has_curve: boolean;
  }[];
  columns: Record<string, [number, number, number, number]>;
  strings: string[];
}

/** `language` is the one of who made it; report_zh has its sentences in Chinese. */
export interface Setting {
  conf: string; peak_reserved: number; wasted: number; retries: number; limit: number | null;
  oom: null | { time_ns: number; step: number | null };
}

export interface WhatIf { settings: Setting[]; best: string | null; device: string }

export interface Page {
  page: number; language: string; report: Report; report_zh: Report; whatif: WhatIf | null; drawn: Drawn;
}
