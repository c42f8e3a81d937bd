import type { Section } from "../shared/wire.ts";

/** The sections to choose from, for a select. */
export function SectionOptions({ sections }: { sections: readonly Section[] }) {
  return (
    <>
      {sections.map((section) => (
        <option key={section.id} value={section.id}>
          {section.name} – {section.groupName}
        </option>
      ))}
    </>
  );
}
