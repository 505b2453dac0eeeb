import Foundation
import Martlet
import MartletTesting

@testable import MartletCLI

/// A folder of a test's own, and command lines of `get` that are carried out within the test's process.
final class GetScene: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "martlet-get-\(UUID())").path

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the folder.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file of the folder.
    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: file(name)))
    }

    /// What a file of the folder says; `nil` where there is none.
    func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: file(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The groups of options that words make, silent ones.
    static func groups(_ words: [String]) throws(UsageError) -> [TransferOptions] {
        var reader = CommandLineParser()
        try reader.read(["-s"] + words)
        return reader.groups
    }

    /// Carries a command line out.
    func run(_ words: String...) async throws -> MartletCLI.ExitStatus {
        try await run(words)
    }

    /// Carries a command line out.
    func run(_ words: [String]) async throws -> MartletCLI.ExitStatus {
        let runner = GetRunner(groups: try GetScene.groups(words))
        do throws(UsageError) {
            return try await runner.run()
        } catch {
            return error.status
        }
    }

    /// Carries out a command line of one URL.
    /// - Parameter change: What is to be otherwise than words can say.
    /// - Returns: What is known of the transfer.
    func transfer(
        _ words: String..., change: (inout TransferOptions) -> Void = { _ in }
    ) async throws -> TransferReport {
        var group = try GetScene.groups(words)[0]
        change(&group)
        let caller = try await CredentialPlan.load(group)
        let plan = try TransferPlan.plans(for: group, from: 0, caller: caller)[0]
        let configuration = try SessionPlan.configuration(for: group, usesTLS: false)
        return await Transfer(plan, session: .init(configuration: configuration), global: group.global).run()
    }
}
