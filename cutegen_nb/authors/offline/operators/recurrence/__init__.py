"""Recurrent layers: LSTM, GRU and plain ones, a product of all inputs and a loop over the steps each."""
