import MartletConditions
import Foundation

/// A network namespace: links, addresses and routes that are invisible to the rest of the machine.
///
/// It exists as long as the process that holds it, which ends with the tests at the latest.
struct NetworkNamespace: Sendable {
    /// The commands to create a namespace, and to enter it by the process identifier of its holder.
    private struct Way: Sendable {
        var make: [String]
        var enter: [String]

        /// As root, and as any user in a user namespace.
        static let all = [
            Way(make: ["-n"], enter: ["-n"]),
            Way(make: ["-rn"], enter: ["-U", "--preserve-credentials", "-n"]),
        ]
    }

    private let holder: ChildProcess
    private let enter: [String]
    private let directory: TemporaryDirectory

    /// Whether the kernel lets this process create one, with a pair of virtual Ethernet links in it.
    static var isAllowed: Bool {
        get async { await allowed != nil }
    }

    private static var allowed: Way? {
        get async {
            for way in Way.all {
                let script = "ip link add v0 type veth peer name v1"
                let run = try? await Command.run("unshare", way.make + ["sh", "-c", script])
                if run?.status == 0 { return way }
            }
            return nil
        }
    }

    /// Calls a closure with a namespace that is removed afterwards.
    ///
    /// It has the links `v0` and `v1`, which are connected to each other: v0 has 10.9.0.1/24 and a default route by
    /// 10.9.0.2.
    static func withNamespace(_ body: (NetworkNamespace) async throws -> Void) async throws {
        let way = try await requireWay()
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let holder = try await ChildProcess.start(
            "unshare", way.make + ["sh", "-c", "echo ready; exec sleep 100000"], in: directory.path,
            outputPath: directory.appending("holder"))
        let namespace = NetworkNamespace(holder: holder, enter: way.enter, directory: directory)
        do {
            try await holder.waitForOutput("ready")
            try await namespace.ip("link", "set", "lo", "up")
            try await namespace.addPair("v0", "v1", address: "10.9.0.1/24")
            try await namespace.ip("route", "add", "default", "via", "10.9.0.2", "dev", "v0")
            try await body(namespace)
        } catch {
            await holder.kill()
            throw error
        }
        await holder.kill()
    }

    private static func requireWay() async throws -> Way {
        guard let way = await allowed else {
            throw ServerFailure(program: "unshare", reason: "the kernel allows no network namespace")
        }
        return way
    }

    private func line(_ program: [String]) throws -> [String] {
        guard let identifier = holder.identifier else {
            throw ServerFailure(program: "unshare", reason: "the namespace has ended")
        }
        return ["-t", "\(identifier)"] + enter + program
    }

    /// Runs a program in it, which has to succeed.
    @discardableResult
    func run(_ program: String...) async throws -> String {
        try await Command.succeed("nsenter", try line(program))
    }

    /// Changes links, addresses or routes.
    func ip(_ words: String...) async throws {
        _ = try await Command.succeed("nsenter", try line(["ip"] + words))
    }

    /// Adds a virtual cable whose first end has an address.
    func addPair(_ name: String, _ peer: String, address: String) async throws {
        try await ip("link", "add", name, "type", "veth", "peer", "name", peer)
        for end in [name, peer] { try await ip("link", "set", end, "up") }
        try await ip("addr", "add", address, "dev", name)
        // A kernel thread sets the running state of a link some time later.
        try await run("sh", "-c", "until ip -o link show \(name) | grep -q 'state UP'; do sleep 0.01; done")
    }

    /// Starts a program in it, calls a closure, and ends the program.
    /// - Parameter program: Its path and its arguments.
    func with(_ program: [String], _ body: (ChildProcess) async throws -> Void) async throws {
        let child = try await ChildProcess.start(
            "nsenter", try line(program), in: directory.path,
            outputPath: directory.appending("output-\(UUID().uuidString)"))
        do {
            try await body(child)
        } catch {
            await child.kill()
            throw error
        }
        await child.stop()
    }
}
