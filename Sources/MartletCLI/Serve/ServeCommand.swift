import ArgumentParser
import FoundationEssentials
import MartletTesting
import SystemPackage

/// `martlet serve`: the test origin on the loopback interface.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve a directory and test routes on 127.0.0.1",
        discussion: """
            Runs until SIGINT or SIGTERM, and prints its URL first. Each request is logged to standard error: method, target, \
            status, bytes of the response's body, and duration. Routes with the names of httpbin.org behave as there.

            ROUTES:

            """
                + StandardRoutes.list.map { "\($0.path): \($0.purpose)" }.joined(separator: "\n"))

    @Argument(help: "The directory whose files are below /files/.") var directory: String?

    @Option(help: "The port; a free one by default.") var port = 0

    @Flag(name: .shortAndLong, help: "Do not log requests.") var quiet = false

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
            guard exists, isFolder else { throw ValidationError("“\(directory)” is not a directory") }
        }
    }

    mutating func run() async throws {
        let routes = StandardRoutes(directory: directory.map { FilePath($0) })
        var options = OriginOptions(binding: .ipv4(port: port), tls: tls ? .trusted : nil)
        if !quiet {
            // Awaited, so that a slow reader of the log slows the clients down rather than filling the memory.
            options.log = { request in
                let usesUnicode = Environment.speaksUTF8
                await Console.complain("\(ColumnText.safe("\(request)", usesUnicode: usesUnicode))\n")
            }
        }
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
