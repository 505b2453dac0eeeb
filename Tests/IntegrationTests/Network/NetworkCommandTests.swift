import Foundation
import MartletTesting
import Testing

@Suite("martlet network")
struct NetworkCommandTests {
    private func object(_ run: Program.Run) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(run.output)) as? [String: Any])
    }

    @Test("--once prints the current path and ends; the exit code says whether there is one")
    func once() async throws {
        let run = try await Program.run("network", "--once", "--json")
        let path = try object(run)
        let status = try #require(path["status"] as? String)
        #expect(["satisfied", "unsatisfied", "unknown"].contains(status))
        #expect(run.status == (status == "unsatisfied" ? 103 : 0))
        let plain = try await Program.run("network", "--once")
        #expect(plain.text.hasPrefix(status))
        #expect(plain.text.hasSuffix("\n"))
    }

    @Test("A host is printed with the path, and with --probe the result of a connection")
    func hosts() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin in
            let run = try await Program.run(
                "network", "--once", "--json", "--host", "127.0.0.1:\(origin.port)", "--probe")
            let hosts = try #require(try object(run)["hosts"] as? [[String: Any]])
            #expect(hosts.count == 1)
            #expect(hosts[0]["status"] as? String == "reachable")
            #expect(hosts[0]["address"] as? String == "127.0.0.1")
            #expect(hosts[0]["probed"] as? Bool == true)
        }
    }

    @Test(
        "An error on the command line exits with 2",
        arguments: [
            ["--once", "--watch"], ["--probe"], ["--sysfs", ""], ["--host", "a b", "--once"], ["--twice"],
            ["x"],
        ])
    func usage(_ words: [String]) async throws {
        let run = try await Program.run(["network"] + words)
        #expect(run.status == 2)
        #expect(run.output.isEmpty)
        #expect(!run.errors.isEmpty)
    }

    @Test(
        "Without netlink, as in some containers, the path is unknown and connections still work"
    )
    func rejected() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin in
            let program = """
                import ctypes, os, struct, sys
                number = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
                refuse = lambda code: 0x00050000 | code
                steps = [(0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 16),
                         (0x06, 0, 0, refuse(int(sys.argv[1]))), (0x06, 0, 0, 0x7FFF0000)]
                code = b"".join(struct.pack("HBBI", *step) for step in steps)
                held = ctypes.create_string_buffer(code)
                class Program(ctypes.Structure):
                    _fields_ = [("count", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
                rules = Program(len(steps), ctypes.cast(held, ctypes.c_void_p))
                call = ctypes.CDLL(None, use_errno=True).prctl
                assert call(38, 1, 0, 0, 0) == 0 and call(22, 2, ctypes.byref(rules), 0, 0) == 0
                os.execv(sys.argv[2], sys.argv[2:])
                """
            // The calls fail with EPERM, and EAFNOSUPPORT.
            for code in [1, 97] {
                let run = try await Program.run(
                    "/usr/bin/env",
                    [
                        "python3", "-c", program, "\(code)", Program.path, "network", "--once", "--json",
                        "--host", "127.0.0.1:\(origin.port)", "--probe",
                    ], input: [], in: nil)
                #expect(run.status == 0, "\(run.errors)")
                let path = try object(run)
                #expect(path["status"] as? String == "unknown")
                let hosts = try #require(path["hosts"] as? [[String: Any]])
                #expect(hosts.first?["status"] as? String == "reachable")
                let page = try await Program.run(
                    "/usr/bin/env",
                    ["python3", "-c", program, "\(code)", Program.path, "http://127.0.0.1:\(origin.port)/"],
                    input: [], in: nil)
                #expect(page.text == "x")
            }
        }
    }
}
