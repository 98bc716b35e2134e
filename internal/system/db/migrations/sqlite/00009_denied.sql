-- Vectors of others who had a voice's name by mistake.

-- +goose Up
ALTER TABLE voices ADD COLUMN denied blob NOT NULL DEFAULT x''; -- as vectors
