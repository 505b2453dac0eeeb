import Foundation
import Martlet
import MartletTesting

@testable import MartletCLI

/// A temporary directory, and `get` command lines that run in the process of the test.
final class GetScene: Sendable {
    let path = FileManager.default.temporaryDirectory.appending(path: "martlet-get-\(UUID())").path

    init() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the directory.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file of the directory.
    func write(_ text: String, to name: String) throws {
        try write(Array(text.utf8), to: name)
    }

    /// Writes a file of the directory.
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(filePath: file(name)))
    }

    /// The text of a file in the directory; `nil` if it does not exist.
    func text(_ name: String) -> String? {
        FileManager.default.contents(atPath: file(name)).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The option groups of command line words, with silent output.
    static func groups(_ words: [String]) throws(UsageError) -> [TransferOptions] {
        var reader = CommandLineParser()
        try reader.read(["-s"] + words)
        return reader.groups
    }

    /// Runs a command line.
    func run(_ words: String...) async throws -> MartletCLI.ExitStatus {
        try await run(words)
    }

    /// Runs a command line.
    func run(_ words: [String]) async throws -> MartletCLI.ExitStatus {
        let runner = GetRunner(groups: try GetScene.groups(words))
        do throws(UsageError) {
            return try await runner.run()
        } catch {
            return error.status
        }
    }

    /// Runs a command line with one URL.
    /// - Parameter change: Sets options that have no command line form.
    /// - Returns: The report of the transfer.
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
