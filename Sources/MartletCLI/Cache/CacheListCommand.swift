import ArgumentParser
import MartletCache
import MartletStorage

/// `martlet cache list`: a line for each entry.
struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each entry, by URL.",
        discussion: """
            A line: status, size of the body, age, for how long it is fresh or since when stale, whose it is, type, URL, \
            and the request fields it was chosen by. Control characters are escaped. With --json a line is an object.
            """)

    /// How many entries are looked at before their lines are written.
    private static let batchCount = 64

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open(CacheNotes())
        let listed = await Console.run { () -> Result<[EntryName], StorageError> in
            do throws(StorageError) {
                return .success(try cache.entryNamesByURL())
            } catch {
                return .failure(error)
            }
        }
        let names: [EntryName]
        switch listed {
        case .success(let found): names = found
        case .failure(let error):
            _ = await CacheOptions.complain([error])
            throw ExitStatus.readFailed
        }
        let isJSON = options.json
        var hasFailed = false
        for start in stride(from: 0, to: names.count, by: CacheListCommand.batchCount) {
            let batch = names[start..<min(start + CacheListCommand.batchCount, names.count)]
            let now = CacheOptions.now
            let (lines, errors) = await Console.run {
                CacheListCommand.lines(batch, of: cache, now: now, isJSON: isJSON)
            }
            try await Console.print(lines)
            if await CacheOptions.complain(errors) { hasFailed = true }
        }
        if hasFailed { throw ExitStatus.readFailed }
    }

    /// The lines of some entries. Those that are gone meanwhile have none.
    private static func lines(
        _ names: ArraySlice<EntryName>, of cache: DiskCache, now: WallTime, isJSON: Bool
    ) -> (lines: String, errors: [StorageError]) {
        var (lines, errors) = ("", [StorageError]())
        for name in names {
            switch cache.look(at: name) {
            case .whole(let reader):
                let line = CacheEntryLine(reader, now: now)
                lines += isJSON ? JSONWriter.text(line.json) : line.text
            case .damaged(let damage):
                lines +=
                    isJSON
                    ? JSONWriter.text(
                        .object([("file", .string(damage.file)), ("damaged", .string("\(damage.fault)"))]))
                    : "damaged  \(damage.file): \(TerminalText.escaped("\(damage.fault)"))"
            case .unreadable(let error):
                errors.append(error)
                continue
            case nil: continue
            }
            lines += "\n"
        }
        return (lines, errors)
    }
}
