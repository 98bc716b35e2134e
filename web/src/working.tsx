// The progress of a recording.
import type { Task } from './api';
import type { TaskState } from './follow';
import { t, type TextKey } from './texts';

/** The stages of a run, with their texts for the reader. */
const stages: Record<string, TextKey> = {
  decode: 'stageDecode',
  vad: 'stageSpeech',
  language: 'stageLanguage',
  transcribe: 'stageText',
  embed: 'stageVoices',
  events: 'stageSounds',
  diarize: 'stageSpeakers',
};

/** queued reports that a task waits for a worker. A live session (live.wav) has no stages. */
export const queued = (task: Task, state?: TaskState | null) =>
  state?.status === 'processing' && state.stage === null && task.audio_filename !== 'live.wav';

/** Working shows the stage and the progress, if the service reports them. */
export function Working({ state }: { state?: TaskState | null }) {
  if (!state?.stage || state.percent === null) return <progress aria-label={t('processing')} />;
  const stage = t(stages[state.stage] ?? 'processing');
  return (
    <div class="working">
      <progress max={100} value={state.percent} aria-label={t('processing')} />
      <span class="muted small">{t('stageAt', { stage, percent: state.percent })}</span>
    </div>
  );
}
