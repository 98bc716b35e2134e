// Package safehttp makes outbound HTTP requests that cannot be turned inwards.
//
// The service fetches audio from addresses that strangers name and posts
// callbacks to them. Every such request goes through a Client, which holds
// these rules:
//
//   - schemes http and https only, no credentials in the URL, ports 80, 443,
//     8080 and 8443;
//   - the host is a DNS name or an address literal in canonical form; the other
//     notations (octal, hexadecimal, integer, short, zoned, percent-encoded,
//     look-alike characters) are refused before anything is resolved;
//   - every address that the name resolves to must be globally reachable
//     unicast: one private address among public ones refuses the whole name;
//   - the check is made at the moment of dialling, on the address that is
//     dialled, for every request and every redirect, so that a name that changes
//     its address between two look-ups gains nothing;
//   - redirects are followed only as often as the caller allows, never from
//     https to http, and each target passes all the rules again;
//   - response headers are bounded, every phase has a time limit, compressed
//     responses are handed on as they came, proxies of the environment are
//     ignored.
//
// An operator opens single hosts, addresses or networks with Config.Allow.
package safehttp
