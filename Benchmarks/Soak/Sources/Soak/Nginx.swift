import Glibc
import Martlet

/// An nginx server on many loopback addresses with the same port.
enum Nginx {
    /// Runs nginx until a closure returns.
    /// - Parameters:
    ///   - hosts: The number of addresses, from 127.0.1.1 on; at most 250.
    ///   - requestsPerConnection: The number of requests after which nginx closes a connection.
    ///   - ready: Receives the port.
    static func serve(
        hosts: Int, requestsPerConnection: Int, ready: ([String: String]) -> Void, wait: () -> Void
    ) throws {
        let template = "/tmp/martlet-soak-XXXXXX"
        var name = template.utf8CString
        let made = unsafe name.withUnsafeMutableBufferPointer { buffer -> Bool in
            guard let address = buffer.baseAddress else { return false }
            return unsafe mkdtemp(address) != nil
        }
        guard made else { throw SoakFailure("no temporary directory: errno \(errno)") }
        let directory = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { remove(directory) }
        for _ in 0..<5 {
            let port = Int.random(in: 10_000..<30_000)
            try write(
                configuration(directory, port, hosts, requestsPerConnection), to: "\(directory)/nginx.conf")
            let process = try Peer.spawn(
                ["nginx", "-e", "\(directory)/error.log", "-p", directory, "-c", "\(directory)/nginx.conf"],
                input: STDERR_FILENO, output: STDERR_FILENO)
            defer { end(process) }
            guard answers(port, process) else { continue }
            ready(["port": "\(port)"])
            wait()
            return
        }
        throw SoakFailure("nginx does not start on any of five ports")
    }

    private static func configuration(
        _ directory: String, _ port: Int, _ hosts: Int, _ requests: Int
    ) -> String {
        let listens = (1...hosts).map { "        listen 127.0.1.\($0):\(port) backlog=4096;\n" }.joined()
        return """
            daemon off;
            master_process off;
            pid \(directory)/nginx.pid;
            error_log \(directory)/error.log;
            events { worker_connections 4096; }
            http {
                access_log off;
                keepalive_requests \(requests);
                client_body_temp_path \(directory)/body;
                proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/fastcgi;
                uwsgi_temp_path \(directory)/uwsgi;
                scgi_temp_path \(directory)/scgi;
                server {
            \(listens)
                    location / { default_type text/plain; return 200 "Hello, world!"; }
                    location = /status { stub_status; }
                }
            }

            """
    }

    /// Returns whether nginx accepts connections within five seconds.
    private static func answers(_ port: Int, _ process: pid_t) -> Bool {
        for _ in 0..<100 {
            if kill(process, 0) != 0 { return false }
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(port).bigEndian
            address.sin_addr.s_addr = UInt32(0x7F00_0101).bigEndian
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe connect(descriptor, $0, size)
                }
            }
            if code == 0 { return true }
            usleep(50_000)
        }
        return false
    }

    private static func end(_ process: pid_t) {
        kill(process, SIGTERM)
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    }

    private static func write(_ text: String, to path: String) throws {
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(Array(text.utf8)) }
    }

    private static func remove(_ directory: String) {
        for name in ["nginx.conf", "nginx.pid", "error.log"] { _ = unsafe unlink("\(directory)/\(name)") }
        for name in ["body", "proxy", "fastcgi", "uwsgi", "scgi"] { _ = unsafe rmdir("\(directory)/\(name)") }
        _ = unsafe rmdir(directory)
    }
}
