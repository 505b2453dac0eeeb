import ArgumentParser
import MartletCache
import MartletStorage

/// `martlet cache verify`: reads all of it.
struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read every byte and compare the checksums.",
        discussion: """
            Entries that are damaged are named and removed, as they would be at the next use; the exit code is 100 \
            then. Files that are not the cache's are left alone.
            """)

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let notes = CacheNotes()
        let cache = try await options.open(notes)
        let result = await Console.run { cache.verify() }
        // In an order that does not depend on the file system's.
        let damages = notes.damages.sorted { $0.file < $1.file }
        try await Console.print(
            options.json ? json(result, damages) : text(result, damages))
        let hasFailed = await CacheOptions.complain(notes.errors)
        if !damages.isEmpty { throw ExitStatus.checksum }
        if hasFailed { throw ExitStatus.readFailed }
    }

    private func text(
        _ result: (whole: Int, byteCount: UInt64, damaged: Int),
        _ damages: [(file: String, fault: EntryFault)]
    ) -> String {
        var text = damages.map { "damaged  \($0.file): \(TerminalText.escaped("\($0.fault)"))\n" }.joined()
        let size = ProgressText.size(Double(result.byteCount))
        text += "\(result.whole) whole, \(size) of bodies; \(damages.count) damaged\n"
        return text
    }

    private func json(
        _ result: (whole: Int, byteCount: UInt64, damaged: Int),
        _ damages: [(file: String, fault: EntryFault)]
    ) -> String {
        let list = damages.map { damage in
            JSONValue.object([("file", .string(damage.file)), ("damaged", .string("\(damage.fault)"))])
        }
        return JSONWriter.text(
            .object([
                ("whole", .number(result.whole)), ("body_bytes", .number(result.byteCount)),
                ("damaged", .number(damages.count)), ("damages", .array(list)),
            ])) + "\n"
    }
}
