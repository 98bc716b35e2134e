module github.com/otograph/otograph/tools

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/evanw/esbuild v0.28.2
	github.com/ggerganov/whisper.cpp/bindings/go v0.0.0-20260227185758-9453b4b9be9b
	github.com/otograph/otograph v0.0.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.24.0
)

require (
	github.com/abadojack/whatlanggo v1.0.1 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/yalue/onnxruntime_go v1.27.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)

replace github.com/otograph/otograph => ../

replace github.com/google/pprof => github.com/google/pprof v0.0.0-20260115054156-294ebfa9ad83
