// Package safehttp makes HTTP requests that can't reach internal addresses.
//
// The service fetches audio from addresses of strangers and posts callbacks to
// them. Every such request goes through a Client, with these rules:
//
//   - It only accepts the schemes http and https, no credentials in the URL,
//     and the ports 80, 443, 8080 and 8443.
//   - The host is a DNS name or an address literal in canonical form. Other
//     notations (octal, hexadecimal, integer, short, zoned, percent-encoded,
//     look-alike characters) are refused before anything is resolved.
//   - Every address to which the name resolves must be globally reachable
//     unicast. One private address among public ones refuses the whole name.
//   - The address is checked at the moment of dialing, for every request and
//     every redirect, so that a name that changes its address between two
//     look-ups gains nothing.
//   - Redirects are followed only as often as the caller allows, never from
//     https to http, and each target must pass all the rules again.
//   - Response headers are limited, every phase has a timeout, compressed
//     responses are passed on unchanged, and proxies in the environment are
//     ignored.
//
// An operator permits single hosts, addresses or networks with Config.Allow.
package safehttp
