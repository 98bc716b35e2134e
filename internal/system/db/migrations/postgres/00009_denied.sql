-- Vectors of others who had a voice's name by mistake.

-- +goose Up
ALTER TABLE voices ADD COLUMN denied bytea NOT NULL DEFAULT ''; -- as vectors
