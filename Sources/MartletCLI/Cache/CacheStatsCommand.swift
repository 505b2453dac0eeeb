import ArgumentParser
import MartletCache
import MartletStorage

/// `martlet cache stats`: how much there is, and how fresh.
struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Count entries and bytes, fresh and stale ones.",
        discussion: """
            Bytes are allocated blocks, as a limit counts them. Fresh is what its own fields say: an application may \
            have rules of its own for responses that say nothing. Bodies are not read: see verify.
            """)

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open(CacheNotes())
        let now = CacheOptions.now
        let result = await Console.run { () -> Result<CacheSurvey, StorageError> in
            do throws(StorageError) {
                var survey = CacheSurvey(now: now)
                for name in try cache.entryNames() {
                    if let sight = cache.look(at: name) { survey.add(sight) }
                }
                survey.occupied = try cache.occupiedByteCount()
                return .success(survey)
            } catch {
                return .failure(error)
            }
        }
        switch result {
        case .success(let survey):
            try await Console.print(
                options.json ? JSONWriter.text(survey.json) + "\n" : survey.table)
            if survey.unreadable > 0 { throw ExitStatus.readFailed }
        case .failure(let error):
            _ = await CacheOptions.complain([error])
            throw ExitStatus.readFailed
        }
    }
}
