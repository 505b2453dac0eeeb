import Foundation

/// A WebSocket server of Python, from httpbin's environment. It returns each message; after the text `close` it closes
/// with the code 4000 and the reason `bye`. It accepts the subprotocol `echo`, and compression.
struct WebSocketServer: PortServer {
    /// The implementations, all from PyPI.
    enum Library: String, CaseIterable, Sendable {
        case websockets, aiohttp, wsproto
    }

    let process: PortProcess

    /// Runs `body` with a server of a library, and ends it.
    static func withServer<Value>(of library: Library, _ body: (WebSocketServer) async throws -> Value) async throws
        -> Value
    {
        let directory = try TemporaryDirectory()
        let script = try directory.write(script(library), to: "server.py")
        // `Scripts/install.sh test` creates it.
        let python = Repository.root.appendingPathComponent(".build/httpbin/bin/python").path
        return try await listening(python, in: directory) { port in ["-u", script, "\(port)"] }.whileRunning(body)
    }

    private static func script(_ library: Library) -> String {
        switch library {
        case .websockets:
            """
            import asyncio, sys
            from websockets.asyncio.server import serve

            async def echo(socket):
                async for message in socket:
                    if message == "close":
                        return await socket.close(4000, "bye")
                    await socket.send(message)

            async def main():
                async with serve(echo, "127.0.0.1", int(sys.argv[1]), max_size=None, subprotocols=["echo"]):
                    await asyncio.Future()

            asyncio.run(main())

            """
        case .aiohttp:
            """
            import sys
            from aiohttp import WSMsgType, web

            async def echo(request):
                socket = web.WebSocketResponse(protocols=["echo"], max_msg_size=0)
                await socket.prepare(request)
                async for message in socket:
                    if message.data == "close":
                        await socket.close(code=4000, message=b"bye")
                    elif message.type == WSMsgType.TEXT:
                        await socket.send_str(message.data)
                    elif message.type == WSMsgType.BINARY:
                        await socket.send_bytes(message.data)
                return socket

            app = web.Application()
            app.router.add_get("/", echo)
            web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)

            """
        case .wsproto:
            """
            import socketserver, sys
            from wsproto import ConnectionType, WSConnection
            from wsproto.events import AcceptConnection, CloseConnection, Message, Ping, Request, TextMessage
            from wsproto.extensions import PerMessageDeflate

            class Echo(socketserver.BaseRequestHandler):
                def handle(self):
                    socket, parts = WSConnection(ConnectionType.SERVER), []
                    while data := self.request.recv(65536):
                        socket.receive_data(data)
                        for event in socket.events():
                            if isinstance(event, Request):
                                chosen = "echo" if "echo" in event.subprotocols else None
                                reply = AcceptConnection(subprotocol=chosen, extensions=[PerMessageDeflate()])
                            elif isinstance(event, (Ping, CloseConnection)):
                                reply = event.response()
                            elif isinstance(event, Message):
                                parts.append(event.data)
                                if not event.message_finished:
                                    continue
                                data = ("" if isinstance(event, TextMessage) else b"").join(parts)
                                parts = []
                                reply = CloseConnection(4000, "bye") if data == "close" else type(event)(data=data)
                            else:
                                continue
                            if not (isinstance(event, CloseConnection) and socket.state.name == "CLOSED"):
                                self.request.sendall(socket.send(reply))
                        if socket.state.name == "CLOSED":
                            return

            socketserver.ThreadingTCPServer.allow_reuse_address = True
            socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()

            """
        }
    }
}
