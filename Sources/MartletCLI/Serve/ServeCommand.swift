import ArgumentParser
import FoundationEssentials
import MartletTesting
import SystemPackage

/// `martlet serve`: the test origin on the loopback interface.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a folder and test routes on 127.0.0.1, until SIGINT or SIGTERM.",
        discussion: "ROUTES:\n"
            + StandardRoutes.list.map { "\($0.path): \($0.purpose)" }.joined(separator: "\n"))

    @Argument(help: "The folder whose files are below /files/.") var directory: String?

    @Option(help: "The port; a free one by default.") var port = 0

    @Flag(help: "Speak TLS, with a certificate of a throw-away authority.") var tls = false

    @Option(help: ArgumentHelp("Write the authority's certificate to this file.", valueName: "file"))
    var caOut: String?

    mutating func validate() throws {
        guard (0...65535).contains(port) else {
            throw ValidationError("option --port: takes a number up to 65535")
        }
        guard caOut == nil || tls else { throw ValidationError("option --ca-out: goes with --tls") }
        if let directory {
            var isFolder = false
            let exists = FileManager.default.fileExists(atPath: directory, isDirectory: &isFolder)
            guard exists, isFolder else { throw ValidationError("“\(directory)” is not a folder") }
        }
    }

    mutating func run() async throws {
        let routes = StandardRoutes(directory: directory.map { FilePath($0) })
        let options = OriginOptions(binding: .ipv4(port: port), tls: tls ? .trusted : nil)
        let origin: TestOrigin
        do { origin = try await TestOrigin.start(options, handler: routes.handler) } catch {
            await Console.report("\(error)")
            throw ExitStatus.connectFailed
        }
        if let file = caOut, let text = origin.authorityPEM {
            do throws(OutputError) {
                try await Console.write(Array(text.utf8), toFile: file, .truncate)
            } catch {
                await Console.report("\(error)")
                throw ExitStatus.writeFailed
            }
        }
        try? await Console.write("\(origin.base)/\n")
        _ = await SignalHandler.next()
        await origin.stop()
    }
}
