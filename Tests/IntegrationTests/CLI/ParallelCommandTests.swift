import Foundation
import MartletTesting
import Testing

@Suite("Parallel transfers of the program")
struct ParallelCommandTests {
    @Test("The output of -w, errors and last lines stay whole lines, and all bodies are complete")
    func lines() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let numbers = 0..<40
            let words = numbers.flatMap { ["-o", "out\($0)", origin.url("/bytes/\($0 * 1000)")] }
            let format = "%{stdout}%{urlnum} %{size_download}\\n%{stderr}%{urlnum} is %{http_code}\\n"
            let run = try await Program.run(
                ["-Z", "-w", format] + words + ["-o", "never", "http://127.0.0.1:1/"], in: directory)
            #expect(run.status == 7)
            #expect(
                run.text.split(separator: "\n").map(String.init).sorted()
                    == (numbers.map { "\($0) \($0 * 1000)" } + ["40 0"]).sorted())
            let told = run.errors.split(separator: "\n").map(String.init)
            #expect(Set(told).isSuperset(of: numbers.map { "\($0) is 200" }))
            #expect(told.filter { $0.hasPrefix("martlet: (7) ") }.count == 1)
            #expect(told.filter { $0.hasPrefix("out") && $0.hasSuffix("/s") }.count == numbers.count)
            for number in numbers {
                let bytes = OutputFile.bytes(of: directory.appending("out\(number)"))
                #expect(bytes == TestPattern.bytes(from: 0, count: number * 1000))
            }
        }
    }

    @Test("Bodies on standard output are interleaved, but a block that arrives together is not split")
    func standardOutput() async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            .text("<\(request.path)>")
        } run: { origin in
            let run = try await Program.run(["-sSZ"] + (0..<30).map { origin.url("/\($0)") })
            #expect(run.status == 0, "\(run.errors)")
            let pieces = run.text.split(separator: ">").map { "\($0)>" }
            #expect(pieces.sorted() == (0..<30).map { "</\($0)>" }.sorted())
        }
    }

    @Test("SIGINT ends all transfers with 130")
    func interrupt() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            // A shell makes its background jobs ignore SIGINT.
            let script = "env --default-signal=INT \"$0\" \"$@\" & echo $! >pid; wait $!"
            let words = ["-c", script, Program.path, "-sSZ", origin.url("/stall/9"), origin.url("/stall/5")]
            let run = try await Program.run("bash", words, input: [], in: directory) { running in
                try await running.child.wait(for: "both bodies") { running.output.count == 14 }
                let pid = try #require(
                    pid_t(OutputFile.contents(of: directory.appending("pid")).dropLast()))
                #expect(kill(pid, SIGINT) == 0)
            }
            #expect(run.status == 130)
        }
    }
}
