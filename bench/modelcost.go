package bench

import (
	"os"

	"github.com/otograph/otograph"
	"github.com/otograph/otograph/models"
	"github.com/otograph/otograph/models/library"
)

// leastSound is the minimum of audio (seconds) over which a cost is measured.
const leastSound = 60

// ModelCosts returns the costs of the models on disk, by the paths of their
// main files, for library.RememberCosts: the processor time of the stage that
// each serves, over at least a minute of audio. Word times belong to the
// recognizer. It omits costs that cannot be separated: several models of one
// role, an embedder together with a segmenter, recordings that both tiers
// processed, and a run without the stages.
func (r *Report) ModelCosts(systems []System) map[string]library.Cost {
	costs := map[string]library.Cost{}
	for i, s := range systems {
		for _, m := range s.models() {
			path := m.Main().Path
			if path == "" || len(s.Set.All(m.Role)) > 1 {
				continue
			}
			used, sound := 0.0, 0.0
			for _, item := range r.Systems[i].Items {
				if stage, ok := item.stageOf(m.Role, s.Set); ok && item.Error == "" && item.StageCPU[stage] > 0 {
					used, sound = used+item.StageCPU[stage], sound+item.Cost.Audio
				}
			}
			info, err := os.Stat(path)
			if sound < leastSound || err != nil {
				continue
			}
			costs[path] = library.Cost{Hour: used / sound * 3600, Sound: sound, Date: r.Machine.Time.Format("2006-01-02"), Size: info.Size()}
		}
	}
	return costs
}

// stageOf returns the stage whose processor time in a recording is the role's
// model's alone.
func (it itemReport) stageOf(role models.Role, set *models.Set) (otograph.Stage, bool) {
	cascade := it.Cost.Stats.Cascade
	oneTier := cascade.Doubtful+cascade.Hearings == 0
	switch role {
	case models.RoleVAD:
		return otograph.StageVAD, true
	case models.RoleStandard:
		return otograph.StageTranscribe, oneTier && it.Tier == otograph.TierStandard
	case models.RoleOptimized:
		return otograph.StageTranscribe, oneTier && it.Tier == otograph.TierOptimized
	case models.RoleEmbedder:
		return otograph.StageEmbed, len(set.All(models.RoleSegmenter)) == 0
	case models.RoleTagger:
		return otograph.StageEvents, true
	case models.RoleSegmenter: // the embedder works in the same stage
	}
	return "", false
}
