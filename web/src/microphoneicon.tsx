// The picture of a microphone.
export const MicrophoneIcon = () => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    <path d="M8 1a2.5 2.5 0 0 1 2.5 2.5v4a2.5 2.5 0 0 1-5 0v-4A2.5 2.5 0 0 1 8 1z" />
    <path class="stroke" d="M3 7.5a5 5 0 0 0 10 0M8 12.5V15M5.5 15h5" />
  </svg>
);
