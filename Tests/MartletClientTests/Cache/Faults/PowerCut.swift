/// What a disk has when the power goes: nothing was synced, so any of the changes may be missing, but for what the rule says.
enum PowerCut: Sendable, CustomStringConvertible {
    /// All changes up to one, as after a kill.
    case behind(Int)
    /// The folder's changes up to one, and nothing of what was written: files are empty.
    case withoutData(Int)
    /// The same, but files have their lengths, and are all zeros.
    case zeros(Int)
    /// Of the changes up to one any, drawn by a seed: of what was written page by page, and of the folder's one in eight
    /// missing.
    case any(Int, seed: UInt64)

    var description: String {
        switch self {
        case .behind(let count): "all of \(count) changes"
        case .withoutData(let count): "\(count) changes without data"
        case .zeros(let count): "\(count) changes with zeros for data"
        case .any(let count, let seed): "some of \(count) changes, by \(seed)"
        }
    }

    /// In what pieces data reach the disk.
    private static let page = 4096

    private struct Content {
        var bytes: [UInt8] = []

        mutating func extend(to byteCount: Int) {
            if bytes.count < byteCount { bytes += [UInt8](repeating: 0, count: byteCount - bytes.count) }
        }

        mutating func write(_ piece: ArraySlice<UInt8>, at offset: Int) {
            extend(to: offset + piece.count)
            bytes.replaceSubrange(offset..<offset + piece.count, with: piece)
        }

        mutating func cut(to byteCount: Int) {
            if bytes.count > byteCount { bytes.removeLast(bytes.count - byteCount) }
            extend(to: byteCount)
        }
    }

    /// The files that are there afterwards.
    func files(after changes: [RecordingFileSystem.Change]) -> [String: [UInt8]] {
        let count: Int
        var random = SplitMix64(state: 0)
        switch self {
        case .behind(let number), .withoutData(let number), .zeros(let number): count = number
        case .any(let number, let seed):
            count = number
            random = SplitMix64(state: seed)
        }
        var contents: [String: Content] = [:]
        // Which file has a name.
        var names: [String: String] = [:]
        for change in changes.prefix(count) {
            if change.isOfFolder {
                if case .any = self, random.next() % 8 == 0 { continue }
                switch change {
                case .made(let name): names[name] = name
                case .renamed(let name, let target):
                    if let file = names.removeValue(forKey: name) { names[target] = file }
                case .removed(let name): names[name] = nil
                case .wrote, .cut: break
                }
                continue
            }
            switch change {
            case .wrote(let file, let offset, let bytes):
                apply(bytes, at: offset, to: &contents[file, default: Content()], &random)
            case .cut(let file, let byteCount):
                if case .withoutData = self { break }
                contents[file, default: Content()].cut(to: byteCount)
            case .made, .renamed, .removed: break
            }
        }
        return names.mapValues { contents[$0]?.bytes ?? [] }
    }

    private func apply(
        _ bytes: [UInt8], at offset: Int, to content: inout Content, _ random: inout SplitMix64
    ) {
        switch self {
        case .behind: content.write(bytes[...], at: offset)
        case .withoutData: break
        case .zeros: content.extend(to: offset + bytes.count)
        case .any:
            // Lengths are the folder's in some file systems, and come with the data in others.
            if random.next() % 2 == 0 { content.extend(to: offset + bytes.count) }
            for start in stride(from: 0, to: bytes.count, by: PowerCut.page) where random.next() % 4 != 0 {
                content.write(bytes[start..<min(bytes.count, start + PowerCut.page)], at: offset + start)
            }
        }
    }
}
