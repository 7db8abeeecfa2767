# truth: leak line 13, 16,384 B/step
# streaming speech model: the left context should be the last 50 frames, and is all of them
import torch
import torch.nn as nn


class Streaming(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.context = nn.Conv1d(64, 64, 9), torch.zeros(4, 64, 8)

    def forward(self, frames):
        self.context = torch.cat([self.context, frames], dim=2)  # <-- leak
        return self.conv(self.context[:, :, -50:])


model = Streaming().eval()
with torch.no_grad():
    for chunk in range(120):
        model(torch.randn(4, 64, 16))
# 4*64*16*4 = 16,384
