package spec

// generalKinds are the classes that include others: the classes that follow one
// in the list, up to and including last, are kinds of it. AudioSet lists a
// class before its kinds, so nested kinds lie within both ranges.
var generalKinds = []struct{ first, last int }{
	{0, 5},     // Speech
	{6, 10},    // Shout
	{13, 18},   // Laughter
	{19, 22},   // Crying, sobbing
	{24, 31},   // Singing
	{27, 28},   // Chant
	{36, 41},   // Breathing
	{42, 43},   // Cough
	{56, 58},   // Hands
	{59, 60},   // Heart sounds, heartbeat
	{67, 131},  // Animal
	{68, 80},   // Domestic animals, pets
	{69, 75},   // Dog
	{76, 80},   // Cat
	{81, 102},  // Livestock, farm animals, working animals
	{82, 84},   // Horse
	{85, 87},   // Cattle, bovinae
	{88, 89},   // Pig
	{90, 91},   // Goat
	{93, 102},  // Fowl
	{94, 96},   // Chicken, rooster
	{97, 98},   // Turkey
	{99, 100},  // Duck
	{101, 102}, // Goose
	{103, 131}, // Wild animals
	{104, 105}, // Roaring cats (lions, tigers)
	{106, 116}, // Bird
	{107, 109}, // Bird vocalization, bird call, bird song
	{110, 111}, // Pigeon, dove
	{112, 113}, // Crow
	{114, 115}, // Owl
	{118, 120}, // Rodents, rats, mice
	{121, 126}, // Insect
	{124, 125}, // Fly, housefly
	{127, 128}, // Frog
	{129, 130}, // Snake
	{132, 276}, // Music
	{133, 210}, // Musical instrument
	{134, 146}, // Plucked string instrument
	{135, 141}, // Guitar
	{147, 155}, // Keyboard (musical)
	{148, 149}, // Piano
	{150, 152}, // Organ
	{153, 154}, // Synthesizer
	{156, 178}, // Percussion
	{157, 158}, // Drum kit
	{159, 165}, // Drum
	{160, 161}, // Snare drum
	{166, 167}, // Cymbal
	{170, 171}, // Rattle (instrument)
	{174, 178}, // Mallet percussion
	{180, 183}, // Brass instrument
	{184, 189}, // Bowed string instrument
	{186, 187}, // Violin, fiddle
	{190, 193}, // Wind instrument, woodwind instrument
	{195, 202}, // Bell
	{200, 201}, // Chime
	{212, 213}, // Hip hop music
	{214, 220}, // Rock music
	{221, 222}, // Rhythm and blues
	{232, 233}, // Classical music
	{234, 242}, // Electronic music
	{243, 245}, // Music of Latin America
	{249, 250}, // Vocal music
	{251, 252}, // Music of Africa
	{253, 254}, // Christian music
	{255, 257}, // Music of Asia
	{277, 279}, // Wind
	{280, 281}, // Thunderstorm
	{282, 291}, // Water
	{283, 285}, // Rain
	{288, 289}, // Ocean
	{292, 293}, // Fire
	{294, 336}, // Vehicle
	{295, 299}, // Boat, Water vehicle
	{300, 321}, // Motor vehicle (road)
	{301, 309}, // Car
	{302, 303}, // Vehicle horn, car horn, honking
	{310, 314}, // Truck
	{316, 319}, // Emergency vehicle
	{322, 328}, // Rail transport
	{323, 327}, // Train
	{329, 334}, // Aircraft
	{330, 332}, // Aircraft engine
	{337, 347}, // Engine
	{338, 341}, // Light engine (high frequency)
	{348, 355}, // Door
	{349, 350}, // Doorbell
	{369, 370}, // Toothbrush
	{378, 380}, // Typing
	{382, 395}, // Alarm
	{383, 388}, // Telephone
	{390, 391}, // Siren
	{396, 397}, // Whistle
	{398, 411}, // Mechanisms
	{400, 402}, // Clock
	{410, 411}, // Camera
	{412, 419}, // Tools
	{418, 419}, // Power tool
	{420, 430}, // Explosion
	{421, 425}, // Gunshot, gunfire
	{426, 427}, // Fireworks
	{431, 434}, // Wood
	{435, 437}, // Glass
	{438, 448}, // Liquid
	{439, 440}, // Splash, splatter
	{443, 446}, // Pour
	{507, 517}, // Noise
}

// Includes reports whether other is a kind of c, as a dog is a kind of animal
// and of domestic animal; no class is a kind of itself.
func (c EventClass) Includes(other EventClass) bool {
	for _, kind := range generalKinds {
		if kind.first == c.Index {
			return other.Index > kind.first && other.Index <= kind.last
		}
	}
	return false
}

// Generality returns the number of classes that are kinds of c: 0 for the most
// specific.
func (c EventClass) Generality() int {
	for _, kind := range generalKinds {
		if kind.first == c.Index {
			return kind.last - kind.first
		}
	}
	return 0
}
