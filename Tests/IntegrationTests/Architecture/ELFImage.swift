import Foundation

/// The contents of a 64-bit little-endian ELF file that tests need: an executable, a shared library or an object.
struct ELFImage {
    /// Thrown if a file is not a readable ELF file.
    struct Malformed: Error {}

    private let bytes: Data
    private let sections: [Section]

    private struct Section {
        let nameOffset: Int
        let type: Int
        let offset: Int
        let size: Int
        let link: Int
    }

    /// Reads the section table of a file.
    init(contentsOf file: URL) throws {
        bytes = try Data(contentsOf: file, options: .mappedIfSafe)
        let start = bytes.startIndex
        guard bytes.count >= 64, bytes[start..<start + 6].elementsEqual([0x7f, 0x45, 0x4c, 0x46, 2, 1]) else {
            throw Malformed()
        }
        let bytes = bytes
        let table = Self.number(bytes, 0x28, 8)
        let entrySize = Self.number(bytes, 0x3a, 2)
        let count = Self.number(bytes, 0x3c, 2)
        guard entrySize >= 64, table >= 0, table + entrySize * count <= bytes.count else { throw Malformed() }
        sections = (0..<count).map { index in
            let header = table + index * entrySize
            return Section(
                nameOffset: Self.number(bytes, header, 4), type: Self.number(bytes, header + 4, 4),
                offset: Self.number(bytes, header + 24, 8), size: Self.number(bytes, header + 32, 8),
                link: Self.number(bytes, header + 40, 4))
        }
    }

    /// The shared libraries that the dynamic linker loads: the `DT_NEEDED` entries.
    var neededLibraries: [String] {
        let dynamic = 6
        let needed = 1
        return sections.filter { $0.type == dynamic && sections.indices.contains($0.link) }.flatMap {
            section in
            stride(from: section.offset, to: section.offset + section.size, by: 16).compactMap { entry in
                guard Self.number(bytes, entry, 8) == needed else { return nil }
                return text(at: sections[section.link].offset + Self.number(bytes, entry + 8, 8))
            }
        }
    }

    /// The linker options that the Swift compiler adds to an object, such as `-lfoundation`.
    var autolinkEntries: [String] {
        let names = sections[Self.number(bytes, 0x3e, 2)].offset
        return sections.filter { text(at: names + $0.nameOffset) == ".swift1_autolink_entries" }.flatMap {
            section in
            let content = bytes[
                bytes.startIndex + section.offset..<bytes.startIndex + section.offset + section.size]
            return content.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private func text(at offset: Int) -> String {
        String(decoding: bytes[(bytes.startIndex + offset)...].prefix { $0 != 0 }, as: UTF8.self)
    }

    private static func number(_ bytes: Data, _ offset: Int, _ width: Int) -> Int {
        let first = bytes.startIndex + offset
        guard first >= bytes.startIndex, first + width <= bytes.endIndex else { return 0 }
        return bytes[first..<first + width].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
