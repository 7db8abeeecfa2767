# SPDX-License-Identifier: MIT
"""A Llama in plain torch, and LoRA adapters, for where transformers and peft are not installed.

Modules have the names that they have there (model.layers.0.self_attn.q_proj, mlp.gate_proj, lm_head,
q_proj.lora_A), what is computed is the same, and so is what is kept for backward, so that what fills the
memory is found under the same names. Weights are random. Works with torch 1.13 to 2.x.
"""
from typing import Any, Iterable, NamedTuple, Optional, Tuple

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

STD = 0.02       # of the random weights, as in Llama
IGNORED = -100   # a label that does not count


class Output(NamedTuple):
    """As transformers' models return it."""
    loss: Optional[torch.Tensor]
    logits: torch.Tensor


def _linear(n_in: int, n_out: int, **where: Any) -> nn.Linear:
    """Not filled: that comes once, for all."""
    return nn.utils.skip_init(nn.Linear, n_in, n_out, bias=False, **where)


class RMSNorm(nn.Module):
    """Computed in fp32, whatever the weights are."""

    def __init__(self, size: int, eps: float, **where: Any):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, **where))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class RotaryEmbedding(nn.Module):
    """Cosines and sines of the positions."""

    def __init__(self, head_size: int, theta: float, device: Any):
        super().__init__()
        exponents = torch.arange(0, head_size, 2, device=device, dtype=torch.float32) / head_size
        self.register_buffer("inv_freq", 1.0 / theta ** exponents, persistent=False)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
        angles = torch.outer(positions, self.inv_freq.float())
        angles = torch.cat((angles, angles), -1)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def _attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
            mask: Optional[torch.Tensor]) -> torch.Tensor:
    """Causal; the mask is added to the scores and has causality in it."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=mask is None)
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    if mask is None:
        mask = _mask(query.shape[-2], None, scores)
    return F.softmax(scores + mask, -1, dtype=torch.float32).to(query.dtype) @ value


def _mask(length: int, kept: Optional[torch.Tensor], like: torch.Tensor) -> torch.Tensor:
    """To be added to scores: of no token one that comes later, or one that is not kept (kept: batch, length)."""
    lowest = torch.finfo(like.dtype).min
    mask = torch.full((length, length), lowest, dtype=like.dtype, device=like.device).triu(1)
    if kept is None:
        return mask
    return mask.masked_fill(kept[:, None, None, :] == 0, lowest)


class Attention(nn.Module):
    def __init__(self, config: Any, **where: Any):
        super().__init__()
        size, n_heads, n_key_value = config.hidden_size, config.num_attention_heads, config.num_key_value_heads
        self.head_size = size // n_heads
        self.q_proj = _linear(size, n_heads * self.head_size, **where)
        self.k_proj = _linear(size, n_key_value * self.head_size, **where)
        self.v_proj = _linear(size, n_key_value * self.head_size, **where)
        self.o_proj = _linear(n_heads * self.head_size, size, **where)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (x.shape[-1] // self.head_size, self.head_size)).transpose(1, 2)

    def forward(self, x: torch.Tensor, rotary: Tuple[torch.Tensor, torch.Tensor],
                mask: Optional[torch.Tensor]) -> torch.Tensor:
        query, key = _rotated(self._heads(self.q_proj(x)), *rotary), _rotated(self._heads(self.k_proj(x)), *rotary)
        value = self._heads(self.v_proj(x))
        shared_by = query.shape[1] // key.shape[1]
        if shared_by > 1:
            key, value = key.repeat_interleave(shared_by, 1), value.repeat_interleave(shared_by, 1)
        return self.o_proj(_attend(query, key, value, mask).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, config: Any, **where: Any):
        super().__init__()
        self.gate_proj = _linear(config.hidden_size, config.intermediate_size, **where)
        self.up_proj = _linear(config.hidden_size, config.intermediate_size, **where)
        self.down_proj = _linear(config.intermediate_size, config.hidden_size, **where)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: Any, **where: Any):
        super().__init__()
        self.self_attn = Attention(config, **where)
        self.mlp = MLP(config, **where)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, **where)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, **where)

    def forward(self, x: torch.Tensor, rotary: Tuple[torch.Tensor, torch.Tensor],
                mask: Optional[torch.Tensor]) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rotary, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    def __init__(self, config: Any, **where: Any):
        super().__init__()
        self.embed_tokens = nn.utils.skip_init(nn.Embedding, config.vocab_size, config.hidden_size, **where)
        self.layers = nn.ModuleList(DecoderLayer(config, **where) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, **where)
        self.rotary_emb = RotaryEmbedding(config.hidden_size // config.num_attention_heads, config.rope_theta,
                                          where.get("device"))
        self.gradient_checkpointing = bool(config.gradient_checkpointing)

    def forward(self, input_ids: torch.Tensor, attention_mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        x = self.embed_tokens(input_ids)
        rotary = self.rotary_emb(x)
        mask = None if attention_mask is None else _mask(x.shape[1], attention_mask, x)
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                x = checkpoint(layer, x, rotary, mask, use_reentrant=False)
            else:
                x = layer(x, rotary, mask)
        return self.norm(x)


class LlamaForCausalLM(nn.Module):
    """`where`: device and, if it is not fp32, dtype, so that weights are made where they stay."""

    def __init__(self, config: Any, **where: Any):
        super().__init__()
        self.config = config
        self.model = Decoder(config, **where)
        self.lm_head = _linear(config.hidden_size, config.vocab_size, **where)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
        with torch.no_grad():
            for parameter in self.parameters():
                if parameter.dim() > 1:  # not the norms'
                    parameter.normal_(0.0, STD)

    def forward(self, input_ids: torch.Tensor, attention_mask: Optional[torch.Tensor] = None,
                labels: Optional[torch.Tensor] = None) -> Output:
        logits = self.lm_head(self.model(input_ids, attention_mask))
        if labels is None:
            return Output(None, logits)
        following = F.pad(labels, (0, 1), value=IGNORED)[:, 1:]  # each token is to say the next one
        scores = logits.float().flatten(0, 1)
        return Output(F.cross_entropy(scores, following.flatten(), ignore_index=IGNORED), logits)


# ---- LoRA

class LoraLinear(nn.Module):
    """A frozen linear layer and what is learned beside it: base(x) + B(A(x)) · alpha / r. A and B are fp32
    whatever the base is, as with peft, so that small updates are not lost."""

    def __init__(self, base: nn.Linear, r: int, alpha: float, dropout: float):
        super().__init__()
        device = base.weight.device
        self.base_layer = base
        self.lora_dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.lora_A = nn.Linear(base.in_features, r, bias=False, device=device)
        self.lora_B = nn.Linear(r, base.out_features, bias=False, device=device)
        nn.init.zeros_(self.lora_B.weight)  # at first it changes nothing
        self.scaling = alpha / r

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = self.base_layer(x)
        learned = self.lora_B(self.lora_A(self.lora_dropout(x.to(self.lora_A.weight.dtype))))
        return (result + learned * self.scaling).to(result.dtype)


def add_lora(model: nn.Module, r: int, alpha: float, dropout: float, targets: Iterable[str]) -> int:
    """Freeze the model and put an adapter beside each linear layer with one of these names; how many."""
    model.requires_grad_(False)
    wanted = set(targets)
    found = [(parent, name, child) for parent in list(model.modules()) for name, child in parent.named_children()
             if name in wanted and isinstance(child, nn.Linear)]
    for parent, name, child in found:
        setattr(parent, name, LoraLinear(child, r, alpha, dropout))
    return len(found)
