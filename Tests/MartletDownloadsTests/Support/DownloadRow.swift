import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// A row of the table of network faults: the behavior of the origin, and the expected result.
struct DownloadRow: Sendable, CustomTestStringConvertible {
    /// The expected result of a download.
    enum Fate: Sendable {
        /// The file is the version of this number.
        case complete(Int)
        /// The file is any one of the versions.
        case completeAny
        /// The download fails with one of the codes, and its message contains these words.
        case fails([HTTPError.Code], saying: [String] = [])
        /// The file is complete, or the download fails.
        case completeOrFails
    }

    /// The row in the matrix, such as `N3`.
    var id: String
    /// The fault and its expected result, as a sentence.
    var name: String
    /// The origin's behavior in an earlier run, which has no retries and must fail; `nil` for no earlier run.
    var earlier: RangeBehavior?
    /// The number of bytes that the earlier run has to store; `nil` for any number.
    var keeps: UInt64?
    /// The behavior of the origin.
    var conduct: RangeBehavior
    /// The changes to the default options of the tests.
    var change: @Sendable (inout DownloadOptions) throws -> Void
    /// Whether the connection uses TLS.
    var isSecure: Bool
    /// The expected result of the row.
    var fate: Fate
    /// Whether a correct origin of the last version must complete the download after a failure.
    var recovers: Bool
    /// The additional checks of the row.
    var audit: @Sendable (RangeRun) -> Void

    init(
        _ id: String, _ name: String, earlier: RangeBehavior? = nil, keeps: UInt64? = nil,
        _ conduct: RangeBehavior, _ fate: Fate, isSecure: Bool = false, recovers: Bool = true,
        change: @escaping @Sendable (inout DownloadOptions) throws -> Void = { _ in },
        audit: @escaping @Sendable (RangeRun) -> Void = { _ in }
    ) {
        self.id = id
        self.name = name
        self.earlier = earlier
        self.keeps = keeps
        self.conduct = conduct
        self.fate = fate
        self.isSecure = isSecure
        self.recovers = recovers
        self.change = change
        self.audit = audit
    }

    var testDescription: String { "\(id): \(name)" }

    /// Runs the row and checks its result.
    func play() async throws {
        try await RangeScene.with(earlier ?? conduct, isSecure: isSecure) { scene in
            let options = try RangeScene.options(change)
            let versions = conduct.versions + (earlier?.versions ?? [])
            if earlier != nil {
                var single = options
                single.retry.maximumRetries = 0
                if single.resumption == .restart { single.resumption = .automatic }
                let run = try await scene.run(single)
                try #require(run.error != nil, "the earlier run was to fail\n\(run.log)")
                if let keeps { #expect(run.error?.resumableByteCount == keeps, "\(run.log)") }
                try await scene.expectOrder(after: run, versions: versions)
                scene.ranges.play(conduct)
            }
            let run = try await scene.run(options)
            try await scene.expectOrder(after: run, versions: versions)
            try expect(run, in: scene)
            audit(run)
            guard run.value == nil, recovers, let last = conduct.versions.last else { return }
            scene.ranges.play(RangeBehavior(last))
            let again = try await scene.run()
            #expect(again.value != nil, "a clean start\n\(again.log)")
            try await scene.expectOrder(after: again, versions: [last])
        }
    }

    private func expect(_ run: RangeRun, in scene: RangeScene) throws {
        switch fate {
        case .complete(let number):
            let version = try scene.directory.version(of: RangeScene.name, among: conduct.versions)
            #expect(version == number, "\(run.log)")
            #expect(run.value?.byteCount == conduct.versions[number].byteCount)
            #expect(run.value?.path == scene.path)
        case .completeAny:
            #expect(run.value != nil, "\(run.log)")
        case .fails(let codes, let words):
            let error = try #require(run.error, "it was to fail\n\(run.log)")
            #expect(codes.contains(error.code), "\(run.log)")
            for word in words { #expect(error.message.contains(word), "\(error)") }
        case .completeOrFails:
            if run.value == nil { #expect(run.error != nil, "\(run.log)") }
        }
    }
}
