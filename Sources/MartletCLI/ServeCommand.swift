import ArgumentParser
import Glibc
import MartletTesting
import SystemPackage

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Serve a directory and test routes on 127.0.0.1",
        discussion: """
            Prints its URL, and runs until SIGINT or SIGTERM. Logs each request to standard error: method, target, status, \
            body size of the response, and duration. Routes that httpbin.org also has behave as they do there.

            ROUTES:

            """ + StandardRoutes.list.map { "\($0.path): \($0.purpose)" }.joined(separator: "\n"))

    @Argument(help: "Serve the files of this directory below /files/") var directory: String?

    @Option(help: "Listen on this port; a free one by default") var port = 0

    @Flag(name: .shortAndLong, help: "Do not log requests") var quiet = false

    @Flag(help: "Use TLS, with a certificate of a temporary authority") var tls = false

    @Option(help: ArgumentHelp("Write the certificate of the authority to a file", valueName: "file")) var caOut:
        String?

    mutating func validate() throws {
        guard (0...65535).contains(port) else { throw ValidationError("option --port: needs a number up to 65535") }
        guard caOut == nil || tls else { throw ValidationError("option --ca-out: needs --tls") }
        if let directory, FileInput.status(of: directory)?.type != S_IFDIR {
            throw ValidationError("“\(directory)” is not a directory")
        }
    }

    mutating func run() async throws {
        let routes = StandardRoutes(directory: directory.map { FilePath($0) })
        var options = OriginOptions(binding: .ipv4(port: port), tls: tls ? .trusted : nil)
        // Nothing reads the recorded requests.
        (options.limits.recordLimit, options.limits.recordedBodyLimit) = (0, 0)
        if !quiet {
            // Awaited by the origin: a slow reader of the log slows the clients down instead of filling the memory.
            options.log = { request in
                await Console.printError("\(ColumnText.safe("\(request)", usesUnicode: Environment.speaksUTF8))\n")
            }
        }
        let origin: TestOrigin
        do { origin = try await TestOrigin.start(options, handler: routes.handler) } catch {
            throw await ExitStatus.connectFailed.reporting("\(error)")
        }
        if let file = caOut, let text = origin.authorityPEM {
            do throws(OutputError) { try await Console.write(Array(text.utf8), toFile: file, .truncate) } catch {
                throw await ExitStatus.writeFailed.reporting("\(error)")
            }
        }
        try? await Console.write("\(origin.base)/\n")
        _ = await SignalHandler.next()
        await origin.stop()
    }
}
